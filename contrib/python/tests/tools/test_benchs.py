# SPDX-License-Identifier: MIT
"""The scripts of benchs/ that measure tools run, on few rows; FAISS's CAGRA is a stand-in, which compares all pairs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gnnd
from conftest import clustered

BENCHS = Path(__file__).parents[4] / "benchs"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def script(monkeypatch):
    """Imports one of them."""
    if not BENCHS.exists():
        pytest.skip("the tests stand alone here, without benchs/")
    monkeypatch.syspath_prepend(str(BENCHS))

    def load(name: str):
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def records_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("task, needs", [("neighbors", "scanpy"), ("umap", "umap")])
def test_tools_are_measured(script, capsys, task: str, needs: str) -> None:
    pytest.importorskip(needs)
    script("python_tools").main([task, "--quick", "--device", "cpu"])
    out = capsys.readouterr().out
    records = {record["way"]: record for record in records_of(out)}
    expected = ["scanpy's default", "pynndescent", "pipnn", "gnnd"] if task == "neighbors" else ["umap's own", "gnnd"]
    assert list(records) == expected
    rows = [line for line in out.splitlines() if line.startswith(f"| {task} |")]
    assert len(rows) == len(records)
    for record, row in zip(records.values(), rows, strict=True):
        if "left_out" in record:
            assert record["way"] == "pipnn" and record["left_out"] == "pipnn is not installed"
            assert record["left_out"] in row
            continue
        assert record["seconds"] > 0 and f"{record['seconds']:.2f}" in row
        assert record["dimension"] in (16, 20)
        if task == "neighbors":
            assert record["recall@14"] > 0.8, record
        else:
            assert record["trustworthiness"] > 0.7, record
    if task == "neighbors":
        assert records["gnnd"]["recall@14"] > 0.985
        assert records["gnnd"]["recall_told"] == pytest.approx(records["gnnd"]["recall@14"], abs=0.01)
    else:
        assert records["gnnd"]["trustworthiness"] > records["umap's own"]["trustworthiness"] - 0.02
        assert 0 < records["gnnd"]["neighbours_seconds"] < records["gnnd"]["seconds"]


def test_rows_have_the_dimension_that_is_stated(script) -> None:
    x = script("python_tools").gaussians(70_000, 30, 6)
    assert x.dtype == np.float32 and x.shape == (70_000, 30)
    singular = np.linalg.svd(x[::70].astype(np.float64) - x[::70].mean(0), compute_uv=False)
    assert singular[5] > 0.1 * singular[0] and singular[6] < 1e-4 * singular[0]


def test_other_rows_and_unknown_tasks(script, tmp_path: Path, monkeypatch, capsys) -> None:
    module = script("python_tools")
    path = tmp_path / "rows.fbin"
    x = clustered(400, 9)
    path.write_bytes(np.array(x.shape, np.int32).tobytes() + x.tobytes())
    monkeypatch.setattr(module, "installed", lambda package: None)
    module.main(["umap", "--data", str(path), "--rows", "300"])
    records = records_of(capsys.readouterr().out)
    assert [(one["n"], one["d"], one["dimension"], one["data"]) for one in records] == [(300, 9, None, "rows.fbin")] * 2
    assert records[1]["left_out"] == "umap-learn, gnnd is not installed"
    module.main(["--ways", "gnnd,umap's own", "--data", str(path)])
    ways = [(one["task"], one["way"]) for one in records_of(capsys.readouterr().out)]
    assert ways == [("neighbors", "gnnd"), ("umap", "gnnd"), ("umap", "umap's own")]
    for arguments, text in ((["tsne"], "no such task: tsne"), (["umap", "--ways", "pipnn"], "no such way: pipnn")):
        with pytest.raises(SystemExit):
            module.main(arguments)
        assert text in capsys.readouterr().err


def test_a_way_that_fails_is_told_and_the_next_runs(script, monkeypatch, capsys) -> None:
    module = script("python_tools")

    def fails(x):
        raise AttributeError("no getnnz")

    ways = {"bad": ("gnnd", fails), "good": ("gnnd", lambda x: {"seconds": 1.0, "recall@14": 0.5})}
    monkeypatch.setitem(module.TASKS, "umap", (lambda options: ways, "gnnd", 50, 4, 2, 20))
    module.main(["umap", "--quick"])
    out = capsys.readouterr().out
    bad, good = records_of(out)
    assert bad["left_out"] == "AttributeError: no getnnz" and bad["left_out"] in out.splitlines()[-2]
    assert good["seconds"] == 1 and "| 1.00 | recall@14 0.5000 |" in out.splitlines()[-1]


class Config:
    """faiss.GpuIndexCagraConfig, faiss.SearchParametersCagra."""


def test_cagra_is_measured(script, tmp_path: Path, monkeypatch, capsys) -> None:
    faiss = pytest.importorskip("faiss")
    made = []

    class Cagra:
        def __init__(self, resources, d, metric, config) -> None:
            assert metric == faiss.METRIC_L2 and config.intermediate_graph_degree == 2 * config.graph_degree
            self.flat, self.config, self.widths = faiss.IndexFlatL2(d), config, []
            made.append(self)

        def train(self, x) -> None:
            self.flat.add(x)

        def search(self, queries, k, params):
            self.widths.append(params.itopk_size)
            return self.flat.search(queries, k)

    def to_cagra(x, graph, degree, *, resources):
        config = Config()
        config.graph_degree, config.intermediate_graph_degree, config.build_algo = degree, 2 * degree, graph.k
        index = Cagra(resources, x.shape[1], faiss.METRIC_L2, config)
        index.train(x[: len(x) // 2])  # half of the neighbours are not found
        return index

    build = gnnd.build
    monkeypatch.setattr(gnnd, "build", lambda x, k, device: build(x, k, device={"cuda": "cpu"}[device]))
    monkeypatch.setattr(gnnd.faiss, "to_cagra", to_cagra)
    for name, value in {
        "GpuIndexCagra": Cagra,
        "GpuIndexCagraConfig": Config,
        "SearchParametersCagra": Config,
        "StandardGpuResources": object,
        "graph_build_algo_NN_DESCENT": "NN_DESCENT",
        "graph_build_algo_IVF_PQ": "IVF_PQ",
        "get_num_gpus": lambda: 1,
        "knn_gpu": lambda resources, queries, x, k: faiss.knn(queries, x, k),
    }.items():
        monkeypatch.setattr(faiss, name, value, raising=False)
    x = (clustered(700, 8) * 8 + 100).clip(0, 255).astype(np.uint8)
    (tmp_path / "x.u8bin").write_bytes(np.array(x.shape, np.int32).tobytes() + x.tobytes())
    arguments = [str(tmp_path / "x.u8bin"), "--rows", "600", "--queries", "100"]
    # As benchs/paper/index_drivers.py calls it.
    script("python_cagra").main([*arguments, "--widths", "32,64", "--degrees", "8,16", "-k", "12"])
    records = records_of(capsys.readouterr().out)
    ways = [(one["links"], one["from"], one.get("k")) for one in records]
    expected = [("to_cagra", 12), ("NN_DESCENT", None), ("IVF_PQ", None)]
    assert ways == [(links, *way) for links in (8, 16) for way in expected]
    for one in records:
        assert (one["rows"], one["d"], one["queries"]) == (500, 8, 100)
        assert [search["itopk_size"] for search in one["searches"]] == [32, 64]
        recalls = [search["recall@10"] for search in one["searches"]]
        assert all(0.3 < value < 0.7 for value in recalls) if one["from"] == "to_cagra" else recalls == [1, 1]
        assert all(search["queries_per_second"] > 0 for search in one["searches"]) and one["ready_seconds"] > 0
    assert 0 < records[0]["graph_seconds"] <= records[0]["ready_seconds"] and records[0]["graph_recall"] > 0.98
    assert [one.config.build_algo for one in made[1::2]] == [12, "NN_DESCENT", "IVF_PQ"] * 2
    assert made[1].widths == [32] * 4 + [64] * 4


@pytest.mark.parametrize("lacks, text", [("GpuIndexCagra", "faiss-gpu-cuvs has it"), ("GPU", "sees no GPU")])
def test_cagra_needs_its_faiss(script, monkeypatch, lacks: str, text: str) -> None:
    faiss = pytest.importorskip("faiss")
    if lacks == "GPU":
        monkeypatch.setattr(faiss, "GpuIndexCagra", object, raising=False)
    else:
        monkeypatch.delattr(faiss, "GpuIndexCagra", raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    with pytest.raises(SystemExit, match=text):
        script("python_cagra").main(["x.fbin"])
