# SPDX-License-Identifier: MIT
"""The installed package as a whole: what it is linked with, how long an import takes, its types."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

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
    code = "import time, numpy; begin = time.process_time(); import gnnd; print(time.process_time() - begin)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.15


def in_a_new_process(code: str) -> str:
    """Returns what the code prints."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_takes_nothing_but_numpy() -> None:
    others = "{'dask', 'distributed', 'faiss', 'hdbscan', 'pynndescent', 'scipy', 'sklearn', 'torch', 'tqdm', 'umap'}"
    assert in_a_new_process(f"import gnnd, sys; print({others} & set(sys.modules))") == "set()\n"
    # Nor does what asks for all names that there are.
    assert (
        in_a_new_process(f"from gnnd import *; import gnnd, sys; dir(gnnd); print({others} & {{*sys.modules}})")
        == "set()\n"
    )


@pytest.mark.parametrize("name", gnnd._MODULES)
def test_a_module_is_there_once_it_is_named(name: str) -> None:
    needs = {
        "distributed": None,
        "graph": None,
        "hdbscan": "scipy",
        "sklearn": "sklearn",
        "umap": None,
        "faiss": "faiss",
    }[name]
    code = f"import gnnd; assert {name!r} in dir(gnnd); print(gnnd.{name}.__name__)"
    if needs is None or importlib.util.find_spec(needs):
        assert in_a_new_process(code) == f"gnnd.{name}\n"
    else:
        with pytest.raises(AssertionError, match=f"ModuleNotFoundError: No module named '{needs}'"):
            in_a_new_process(code)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="module 'gnnd' has no attribute 'bild'"):
        gnnd.bild  # noqa: B018
    assert (
        tuple(sorted(path.stem for path in Path(gnnd.__file__).parent.glob("[a-z]*") if path.suffix in ("", ".py")))
        == gnnd._MODULES
    )


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert gnnd.__version__ == version("gnnd")


def test_types_are_installed() -> None:
    folder = Path(gnnd.__file__).parent
    assert (folder / "py.typed").exists()
    assert "def build(" in (folder / "_native.pyi").read_text()


def test_type_checkers_know_the_names(tmp_path: Path) -> None:
    """Those of modules that are loaded when they are used, too; and no others."""
    pytest.importorskip("mypy")
    from mypy import api

    program = tmp_path / "program.py"
    program.write_text(
        "import gnnd\n"
        "reveal_type(gnnd.build([[0.0]]).ids)\n"
        "reveal_type(gnnd.graph.connected_components)\n"
        "reveal_type(gnnd.umap.knn)\n"
        "gnnd.bild()\n"
    )
    found, errors, _ = api.run([str(program), "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent"])
    lines = [line.partition("program.py:")[2] for line in found.splitlines()]
    assert not errors and len(lines) == 5, found
    assert "DeviceArray" in lines[0] and "ndarray" in lines[0]
    assert all(f'{line}: note: Revealed type is "def (' in lines[line - 2] for line in (3, 4)), found
    assert '5: error: Module has no attribute "bild"' in lines[3]


def test_lists_are_those_of_the_library() -> None:
    """A metric, type or format that the library has is known here; the compiler does not tell who forgot it."""
    from gnnd import _arrays, _metrics
    from gnnd.distributed import _base

    assert sorted(_arrays._DTYPES.values()) == sorted(_native.vector_dtypes)
    assert sorted(_base._NUMPY) == sorted(_native.vector_dtypes)
    assert [name for name in _native.metrics if _metrics.translation_invariant(name)] == ["l2", "l1", "linf"]
    assert (_base._BIN["bf16bin"], _base._VECS["bvecs"]) == ("bf16", "u8")
    assert not {"ibin", "ivecs", "npy"} & {*_base._BIN, *_base._VECS}
