# SPDX-License-Identifier: MIT
"""CUDA does not survive a fork: a process that was forked from one which has used a GPU must not touch it."""

from __future__ import annotations

import os
from typing import Any

from . import _native

_cuda_process: int | None = None  # that has used a GPU, or may have


def use_cuda() -> None:
    """Comes before whatever may use a GPU. :raises RuntimeError: where an ancestor of this process has done so"""
    global _cuda_process
    if _cuda_process is None:
        if _native.device_count()[0] > 0:
            _cuda_process = os.getpid()
    elif _cuda_process != os.getpid():
        raise RuntimeError(
            f"CUDA was used by process {_cuda_process} before this process was forked; use device='cpu' here, or start "
            "processes by 'spawn' (multiprocessing.get_context)"
        )


def named(device: Any) -> str:
    """A device as the native functions take it, once this process may use it. :raises RuntimeError: see use_cuda()"""
    name = str(device)
    if name != "cpu":
        use_cuda()
    return name
