# SPDX-License-Identifier: MIT
"""The installed package as a whole: what it is linked with, how long an import takes, its types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gnnd
from gnnd import _native


def _needed(path: str) -> list[str]:
    """The NEEDED libraries of a shared object, as the ELF file lists them."""
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return [line.partition("[")[2].rstrip("]") for line in out.splitlines() if "(NEEDED)" in line]


def test_needs_nothing_but_the_system() -> None:
    """No CUDA, no FAISS, no BLAS: one wheel serves machines with and without a GPU."""
    allowed = ("libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-linux", "libgcc_s.", "libstdc++.", "libgomp")
    needed = _needed(_native.__file__)
    assert needed
    assert [name for name in needed if not name.startswith(allowed)] == []


def test_import_is_quick() -> None:
    """In a process of its own, numpy apart; the least of five, for other work may disturb one."""
    code = "import time, numpy; begin = time.perf_counter(); import gnnd; print(time.perf_counter() - begin)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.15


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert gnnd.__version__ == version("gnnd")


def test_types_are_installed() -> None:
    folder = Path(gnnd.__file__).parent
    assert (folder / "py.typed").exists()
    assert "def build(" in (folder / "_native.pyi").read_text()


def test_lists_are_those_of_the_library() -> None:
    """A metric, type or format that the library has is known here; the compiler does not tell who forgot it."""
    from gnnd import _arrays, _metrics
    from gnnd.distributed import _base

    assert sorted(_arrays._DTYPES.values()) == sorted(_native.vector_dtypes)
    assert sorted(_base._NUMPY) == sorted(_native.vector_dtypes)
    assert [name for name in _native.metrics if _metrics.translation_invariant(name)] == ["l2", "l1", "linf"]
    assert (_base._BIN["bf16bin"], _base._VECS["bvecs"]) == ("bf16", "u8")
    assert not {"ibin", "ivecs", "npy"} & {*_base._BIN, *_base._VECS}
