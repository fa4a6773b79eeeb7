# SPDX-License-Identifier: MIT
"""The experiments by name, in the order of `all`."""

from __future__ import annotations

from importlib import import_module

from points import Experiment

NAMES = ("convergence", "ablation", "million", "scale10m", "merge", "large", "bootstrap", "crossing")


def experiments() -> dict[str, Experiment]:
    """All of them, by name."""
    return {name: import_module(f"experiments.{name}").EXPERIMENT for name in NAMES}
