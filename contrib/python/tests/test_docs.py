# SPDX-License-Identifier: MIT
"""The examples of contrib/docs/python.md and of README.md run as they stand, one after the other."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import gnnd

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
README = Path(__file__).parents[3] / "README.md"
TOOLS = {"scikit-learn": "sklearn", "UMAP": "umap", "HDBSCAN": "hdbscan", "scanpy": "scanpy", "FAISS": "faiss"}


def code_of(section: str) -> str:
    """The Python code below a heading of the page."""
    return python_of(PAGE, section)


def python_of(page: Path, section: str) -> str:
    text = page.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", ["Graphs", *TOOLS])
def test_examples(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip("the tests stand alone here, without the page")
    assert code_of(section)
    needed = [section] if section in ("Graphs", "FAISS", "scikit-learn") else ["scikit-learn", section]
    for one in needed:
        if one in TOOLS and importlib.util.find_spec(TOOLS[one]) is None:
            pytest.skip(f"{one} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for one in dict.fromkeys(["Graphs", *needed]):  # what an example needs stands above it
        exec(compile(code_of(one), f"{PAGE.name}: {one}", "exec"), names)


# Packages that statements of README's example need beside NumPy.
NEEDS = {"gnnd.faiss": "faiss", "gnnd.umap": "pynndescent", "Client": "distributed", "base.graph": "distributed"}


@pytest.fixture
def client():
    """Of a Dask cluster in this process; None where there is no Dask."""
    if importlib.util.find_spec("distributed") is None:
        yield None
        return
    import distributed

    local = {"processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.mark.filterwarnings("ignore")
def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client) -> None:
    """Given vectors and a Dask client, and nothing imported but gnnd."""
    if not README.exists():
        pytest.skip("the tests stand alone here, without the README")
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).integers(256, size=(1600, 16)).astype(np.uint8)
    (tmp_path / "base.u8bin").write_bytes(np.array(x.shape, np.uint32).tobytes() + x.tobytes())
    if client is not None:
        monkeypatch.setattr("distributed.Client", lambda address: client)
    names: dict = {"gnnd": gnnd, "x": x.astype(np.float32)}
    code, left_out = python_of(README, "In Python"), []
    statements = ast.parse(code).body
    for statement in statements:
        text = ast.unparse(statement)
        missing = {NEEDS[name] for name in NEEDS if name in text} - set(
            filter(importlib.util.find_spec, NEEDS.values())
        )
        if missing:
            left_out.append(f"{text}: {', '.join(missing)} is not installed")
        else:
            exec(text, names)
    assert names["graph"].recall >= 0.98
    if "index" in names:
        assert names["index"].search(names["x"][:3], 1)[1].ravel().tolist() == [0, 1, 2]
    if "whole" in names:
        assert names["whole"].recall >= 0.98
    if "knn" in names:
        assert names["knn"][0].shape == (1600, 15)
    if client is not None:
        assert gnnd.load("base.graph").shards == 16
    assert len(statements) == 8 and len(left_out) < 7
    if left_out:
        pytest.skip("of README's example was left out: " + "; ".join(left_out))
