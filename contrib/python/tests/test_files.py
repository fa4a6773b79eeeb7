# SPDX-License-Identifier: MIT
"""Graph files, vector files, and graphs in shards."""

from __future__ import annotations

import numpy as np
import pytest

import gnnd
from conftest import clustered, recall_of, stop_after_two_tasks


def test_a_graph_comes_back(x, tmp_path):
    graph = gnnd.build(x, k=10)
    graph.save(tmp_path / "a.gnnd")
    read = gnnd.load(tmp_path / "a.gnnd")
    np.testing.assert_array_equal(read.ids, graph.ids)
    np.testing.assert_array_equal(read.distances, graph.distances)
    assert read.measured == graph.measured and read.metric == "l2" and read.stats == {}
    gnnd.save(read, str(tmp_path / "b.gnnd"))
    assert (tmp_path / "a.gnnd").read_bytes() == (tmp_path / "b.gnnd").read_bytes()


def test_a_graph_without_a_base(x, tmp_path):
    graph = gnnd.build(x, k=4)
    plain = gnnd.Graph(graph.ids, graph.distances, "l2")
    plain.save(tmp_path / "plain.gnnd")
    assert gnnd.load(tmp_path / "plain.gnnd").recall is None
    plain.save(tmp_path / "known.gnnd", base=x)
    graph._recall = None
    graph.save(tmp_path / "same.gnnd")
    assert (tmp_path / "known.gnnd").read_bytes() == (tmp_path / "same.gnnd").read_bytes()


def test_damaged_files(x, tmp_path):
    path = tmp_path / "a.gnnd"
    gnnd.build(x, k=4).save(path)
    good = path.read_bytes()
    for bad in (b"", good[:-1], good[:500] + bytes([good[500] ^ 1]) + good[501:], b"GNNDGRPH" + bytes(200)):
        path.write_bytes(bad)
        with pytest.raises(OSError, match="a.gnnd"):
            gnnd.load(path)
    with pytest.raises(FileNotFoundError, match="nothing.gnnd"):
        gnnd.load(tmp_path / "nothing.gnnd")
    with pytest.raises(OSError, match="there"):
        gnnd.build(x, k=4).save(tmp_path / "there" / "a.gnnd")


@pytest.mark.parametrize("name, dtype", [("x.npy", "float32"), ("x.npy", "uint8"), ("x.npy", "float64")])
def test_vector_files(tmp_path, name, dtype):
    x = np.random.default_rng(0).integers(0, 99, size=(20, 6)).astype(dtype)
    np.save(tmp_path / name, x)
    read = gnnd.read_vectors(tmp_path / name)
    np.testing.assert_array_equal(read, x)
    assert read.dtype == (np.float32 if dtype == "float64" else dtype)


def test_vector_files_of_other_formats(tmp_path):
    x = clustered(20, 6)
    (tmp_path / "x.fbin").write_bytes(np.array(x.shape, np.int32).tobytes() + x.tobytes())
    np.testing.assert_array_equal(gnnd.read_vectors(tmp_path / "x.fbin"), x)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    (tmp_path / "x.bf16bin").write_bytes(np.array(x.shape, np.int32).tobytes() + bits.tobytes())
    assert gnnd.read_vectors(tmp_path / "x.bf16bin").dtype.name == "bfloat16"
    (tmp_path / "x.txt").write_text("1 2 3")
    with pytest.raises(OSError, match="x.txt"):
        gnnd.read_vectors(tmp_path / "x.txt")


def test_in_shards(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    records = []
    graph = gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", k=10, shards=3, progress=records.append)
    assert graph.shards == 3 and len(graph) == 1200 and graph.k == 10 and graph.metric == "l2"
    assert graph.recall >= 0.98 and graph.recall_interval[0] <= graph.recall
    assert records[-1]["tasks_done"] == records[-1]["tasks"] == 6
    whole = graph.to_graph()
    assert recall_of(whole, x, "l2", 10) >= 0.98 and whole.measured == graph.measured
    ids, distances = graph[100:110]
    assert ids.dtype == np.int64
    np.testing.assert_array_equal(ids, whole.ids[100:110])
    np.testing.assert_array_equal(graph[-1][0], whole.ids[-1])
    np.testing.assert_array_equal(graph[5][1], whole.distances[5])
    assert graph[30:10][0].shape == (0, 10)
    for rows in (slice(0, 10, 2), slice(10, 0, -1)):
        with pytest.raises(ValueError, match="step"):
            graph[rows]
    with pytest.raises(TypeError, match="a number or a slice, not list"):
        graph[[5, 1]]
    for read in (lambda: graph[1200], lambda: graph.read(1190, 11), lambda: graph.read(-1, 2)):
        with pytest.raises(IndexError):
            read()
    graph.save(tmp_path / "one.gnnd")
    np.testing.assert_array_equal(gnnd.load(tmp_path / "one.gnnd").ids, whole.ids)
    assert isinstance(gnnd.load(tmp_path / "work"), gnnd.ShardedGraph)
    assert "3 shards" in repr(graph) and str(tmp_path / "x.npy") in graph.base


def test_shards_with_wide_ids_and_without_checkpoints(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    graph = gnnd.build_sharded(
        tmp_path / "x.npy", tmp_path / "work", k=10, shards=3, id_bytes=8, checkpoint_seconds=float("inf")
    )
    assert graph.recall >= 0.98 and recall_of(graph.to_graph(), x, "l2", 10) >= 0.98
    assert sum(file.stat().st_size for file in (tmp_path / "work").glob("lists-*")) > 1200 * 10 * 12
    with pytest.raises(ValueError, match="id_bytes"):
        gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "other", k=10, id_bytes=5)


def test_near_shards(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    graph = gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", k=10, shards=6, plan="near")
    assert graph.recall >= 0.99 and recall_of(graph.to_graph(), x, "l2", 10) >= 0.98
    with pytest.raises(OSError, match="the plan is near, asked for is all"):
        gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", k=10, shards=6, resume=True)
    for wrong in ({"plan": "next"}, {"plan": "near", "recall": 1}):
        with pytest.raises(ValueError, match="plan"):
            gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "other", k=10, shards=6, **wrong)


@pytest.mark.parametrize("plan", ["all", "near"])
@pytest.mark.parametrize("dtype", ["float32", np.float16, np.dtype("uint8")])
def test_shards_of_a_function(x, tmp_path, plan, dtype):
    rows = (x * 10 + 100).astype(dtype)
    asked = []

    def read(first, count):
        asked.append(count)
        return rows[first : first + count]

    of = {"shape": x.shape, "dtype": dtype, "k": 10, "shards": 4, "plan": plan}
    graph = gnnd.build_sharded(read, tmp_path / "work", **of)
    assert graph.recall >= 0.99 and recall_of(graph.to_graph(), rows, "l2", 10) >= 0.98
    assert graph.base == "" and graph.to_graph()._base == gnnd.build(rows, k=10)._base
    asked.clear()
    assert gnnd.build_sharded(read, tmp_path / "work", **of, resume=True).measured == graph.measured
    assert 0 < sum(asked) <= len(x), "only what tells these vectors from others"
    np.save(tmp_path / "rows.npy", rows)
    del of["shape"], of["dtype"]
    assert gnnd.build_sharded(tmp_path / "rows.npy", tmp_path / "work", **of, resume=True).n == len(x)


def test_what_a_function_of_rows_raises(x, tmp_path):
    of = {"shape": x.shape, "dtype": "float32", "k": 6, "shards": 3, "checkpoint_seconds": 0}

    class Gone(Exception):
        pass

    def failing(after):
        calls = iter(range(10**9))

        def read(first, count):
            if next(calls) >= after:
                raise Gone(f"no rows from {first}")
            return x[first : first + count]

        return read

    for after in (0, 1, 2, 3, 5, 40, 400):
        with pytest.raises(Gone, match="no rows from"):
            gnnd.build_sharded(failing(after), tmp_path / "work", **of, resume=True)
    with pytest.raises(OSError, match="the base holds other vectors"):
        gnnd.build_sharded(lambda first, count: x[first : first + count] + 1, tmp_path / "work", **of, resume=True)
    graph = gnnd.build_sharded(lambda first, count: x[first : first + count], tmp_path / "work", **of, resume=True)
    assert graph.recall >= 0.99


def test_functions_that_give_other_rows(x, tmp_path):
    of = {"shape": x.shape, "dtype": "float32", "k": 6, "shards": 3}
    for read, kind, message in (
        (lambda first, count: x[first : first + count - 1], ValueError, r"came as \d+ x 12 f32, expected \d+ x 12 f32"),
        (lambda first, count: x[first : first + count, 1:], ValueError, r"x 11 f32, expected \d+ x 12 f32"),
        (lambda first, count: x[first : first + count].astype(np.float16), ValueError, "x 12 f16, expected"),
        (lambda first, count: x[first], ValueError, r"base\(0, \d+\) has 1 dimensions"),
        (lambda first, count: x[first : first + count].astype(str), TypeError, r"base\(0, \d+\) is of <U"),
        (lambda first: x, TypeError, "positional argument"),
    ):
        with pytest.raises(kind, match=message):
            gnnd.build_sharded(read, tmp_path / "work", **of)
    for wrong, kind, message in (
        ({"shape": None}, TypeError, "needs both"),
        ({"dtype": None}, TypeError, "needs both"),
        ({"dtype": "float64"}, TypeError, "dtype = float64; vectors are float32"),
        ({"shape": (0, 12)}, ValueError, "n = 0, allowed are 1 to"),
    ):
        with pytest.raises(kind, match=message):
            gnnd.build_sharded(lambda first, count: x[first : first + count], tmp_path / "work", **(of | wrong))
    with pytest.raises(TypeError, match="a file tells its own"):
        gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", dtype="float32")


def test_shards_that_cannot_be(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(FileNotFoundError):
        gnnd.build_sharded(tmp_path / "y.npy", tmp_path / "work")
    with pytest.raises(ValueError, match="shards"):
        gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", shards=-1)
    with pytest.raises(RuntimeError, match="host_memory|bytes"):
        gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", shards=2, host_memory=1000)
    stop_after_two_tasks(x, tmp_path / "work", 6)
    with pytest.raises(OSError, match="work"):
        gnnd.load(tmp_path / "work")  # not finished
    assert gnnd.build_sharded(tmp_path / "x.npy", tmp_path / "work", k=6, resume=True).n == 1200
