# SPDX-License-Identifier: MIT
"""Arguments of the wrong kind: what is raised names the argument, the value and what is allowed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gnnd
from conftest import clustered
from gnnd import _native

NAN = float("nan")


@pytest.fixture(scope="module")
def x():
    return clustered(200, 5)


@pytest.fixture(scope="module")
def graph(x):
    return gnnd.build(x, 8, device="cpu")


@pytest.fixture(scope="module")
def folder(x, tmp_path_factory):
    made = tmp_path_factory.mktemp("values")
    np.save(made / "x.npy", x)
    gnnd.build_sharded(made / "x.npy", made / "graph", k=4, shards=2)
    return made


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({"shards": 1.5}, TypeError, "shards must be an int, not float: 1.5"),
        ({"shards": True}, TypeError, "shards must be an int, not bool: True"),
        ({"shards": 2**40}, ValueError, "shards = 1099511627776, allowed are -2147483648 to 2147483647"),
        ({"resume": 1}, TypeError, "resume must be a bool, not int: 1"),
        ({"plan": None}, TypeError, "plan must be a str, not NoneType: None"),
        ({"host_memory": 1.5}, TypeError, "host_memory must be bytes, as an int or as '8GiB', not float: 1.5"),
        ({"host_memory": "1Q"}, ValueError, "host_memory = '1Q', allowed are sizes up to 1024T"),
        ({"host_memory": -1}, ValueError, "host_memory .* = -1, allowed are 0 to"),
        ({"device_memory": []}, TypeError, "device_memory must be bytes, as an int or as '8GiB', not list"),
        ({"checkpoint_seconds": "a"}, TypeError, "checkpoint_seconds must be a number, not str: 'a'"),
        ({"checkpoint_seconds": NAN}, ValueError, "checkpoint_seconds = nan, allowed are 0 to inf"),
        ({"workers": None}, TypeError, "workers must be an int, not NoneType"),
        ({"devices": "gpu"}, ValueError, "unknown device 'gpu'"),
        ({"devices": None}, ValueError, "unknown device 'None'"),
        ({"recall": NAN}, ValueError, "recall = nan, allowed are 0 to 1"),
        ({"work": 5}, TypeError, "work must be a path, as str, bytes or os.PathLike, not int: 5"),
        ({"base": 5.0}, TypeError, "base must be a path, as str, bytes or os.PathLike, not float: 5.0"),
        ({"shape": (200, 5.0)}, TypeError, "d must be an int, not float: 5.0"),
        ({"shape": 200}, TypeError, "shape must be n and d of the rows, not 200"),
    ],
)
def test_build_sharded(folder, given, error, text):
    arguments = {"base": folder / "x.npy", "work": folder / "other", "k": 4, **given}
    if "shape" in given:
        arguments |= {"base": lambda first, count: None, "dtype": "float32"}
    with pytest.raises(error, match=text):
        gnnd.build_sharded(**arguments)
    assert not (folder / "other").exists()


@pytest.mark.parametrize(
    "given", [{"host_memory": "1GiB"}, {"devices": "cpu"}, {"devices": ["cpu"]}, {"resume": np.True_}]
)
def test_build_sharded_takes_other_forms(folder, tmp_path, given):
    assert gnnd.build_sharded(folder / "x.npy", tmp_path / "work", k=4, shards=np.int64(2), **given).shards == 2


@pytest.mark.parametrize(
    "operation, given, error, text",
    [
        ("search_links", {"entry": -1}, ValueError, "entry = -1, allowed are 0 to 199"),
        ("search_links", {"entry": 1.5}, TypeError, "entry must be an int, not float: 1.5"),
        ("search_links", {"degree": 2.5}, TypeError, "degree must be an int, not float: 2.5"),
        ("search_links", {"threads": None}, TypeError, "threads must be an int, not NoneType: None"),
        ("symmetric_graph", {"neighbors": "4"}, TypeError, "neighbors must be an int, not str: '4'"),
        ("mutual_graph", {"neighbors": 2**40}, ValueError, "neighbors = 1099511627776, allowed are"),
        ("neighbors_graph", {"values": None}, TypeError, "values must be a str, not NoneType"),
        ("full_rows", {"radius": 10**400}, ValueError, "radius is beyond what a float64 holds"),
        ("search_links", {"degree": 2**70}, ValueError, "degree = 1180591620717411303424, allowed are 1 to 4096"),
        ("full_rows", {"radius": "a"}, TypeError, "radius must be a number, not str: 'a'"),
        ("connected_components", {"threads": 1.5}, TypeError, "threads must be an int, not float: 1.5"),
        ("jaccard_graph", {"include_self": 1}, TypeError, "include_self must be a bool, not int: 1"),
        ("jaccard_graph", {"prune": 2}, ValueError, "prune = 2, allowed are 0 to 1"),
        ("fuzzy_simplicial_set", {"bandwidth": []}, TypeError, "bandwidth must be a number, not list: "),
        ("core_distances", {"alpha": None}, TypeError, "alpha must be a number, not NoneType: None"),
        ("mutual_reachability_graph", {"min_samples": 0.5}, TypeError, "min_samples must be an int, not float"),
        ("duplicates", {"threshold": "a"}, TypeError, "threshold must be a number, not str: 'a'"),
        ("duplicates", {"metric": "cosine"}, ValueError, "metric = 'cosine' for a graph, whose metric is 'l2'"),
        ("duplicates", {"k": 3}, ValueError, "k = 3 for a graph, whose k is 8"),
    ],
)
def test_operations(x, graph, operation, given, error, text):
    vectors = (x,) if operation == "search_links" else ()
    with pytest.raises(error, match=text):
        getattr(gnnd.graph, operation)(*vectors, graph, **given)


def test_duplicates_of_a_graph_that_is_told_again(graph):
    assert gnnd.duplicates(graph, metric="l2", k=8).full == 0


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x, graph: gnnd.eval(graph, x, 1.5), TypeError, "at must be an int, not float: 1.5"),
        (lambda x, graph: gnnd.eval(graph, x, objects=1.5), TypeError, "objects must be an int, not float: 1.5"),
        (lambda x, graph: gnnd.eval(graph, x, seed=-1), ValueError, "seed = -1, allowed are 0 to 18446744073709551615"),
        (lambda x, graph: gnnd.append(x, graph, x, method=None), TypeError, "method must be a str, not NoneType"),
        (lambda x, graph: gnnd.plan(1.5, 4), TypeError, "n must be an int, not float: 1.5"),
        (lambda x, graph: gnnd.plan(10, None), TypeError, "d must be an int, not NoneType: None"),
        (lambda x, graph: gnnd.plan(10, 4, "float23"), TypeError, "dtype = float23; vectors are float32"),
        (lambda x, graph: gnnd.graph.equal_rows(x, threads="2"), TypeError, "threads must be an int, not str: '2'"),
        (lambda x, graph: gnnd.keep_host_memory(-1), ValueError, "bytes = -1, allowed are 0 to"),
        (lambda x, graph: gnnd.keep_host_memory(None), TypeError, "bytes must be bytes, as an int or as '8GiB'"),
        (lambda x, graph: gnnd.build(x, k=2**70), ValueError, "k = 1180591620717411303424, allowed are 1 to 1024"),
        (lambda x, graph: gnnd.eval(graph, x, k=3), TypeError, r"gnnd.eval\(\) takes no k: its arguments tell it"),
        (lambda x, graph: gnnd.refine(x, graph, metric="l1"), TypeError, r"gnnd.refine\(\) takes no metric"),
        (lambda x, graph: graph.save("graph", base=x[1:]), ValueError, "a graph of 200 objects for 199 vectors"),
        (lambda x, graph: gnnd.build(x, metric="\udcff"), ValueError, r"unknown metric '\\udcff'"),
        (lambda x, graph: gnnd.build(x, **{"\udcff": 1}), TypeError, r"unknown parameter '\\udcff'"),
        (
            lambda x, graph: gnnd.build(x, k=list(range(99))),
            TypeError,
            r"k must be an int, not list: \[0, 1, 2, 3, 4, 5, \.\.\.\]$",
        ),
    ],
)
def test_others(x, graph, call, error, text):
    with pytest.raises(error, match=text):
        call(x, graph)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", ">f4", float, np.float16, np.dtype("uint8")])
def test_plans_of_types(dtype):
    size = {"bfloat16": 2, "float16": 2, "uint8": 1}.get(dtype if isinstance(dtype, str) else np.dtype(dtype).name, 4)
    assert gnnd.plan(10, 4, dtype, device="cpu") == gnnd.plan(
        10, 4, {1: "int8", 2: "float16", 4: "float32"}[size], device="cpu"
    )


def test_memory_as_the_tool_takes_it(x):
    assert gnnd.build(x, 4, device="cpu", device_memory="8GiB").n == 200
    gnnd.keep_host_memory("256MiB")


@pytest.mark.parametrize("wrong", [None, "ids", "vectors", "shards"])
def test_graphs_are_wanted(x, graph, folder, tmp_path, wrong):
    given = {"ids": graph.ids, "vectors": x, "shards": gnnd.load(folder / "graph")}.get(wrong)
    text = f"must be a gnnd.Graph, not {type(given).__name__}"
    for name, call in {
        "graph": lambda: gnnd.eval(given, x),
        "graph ": lambda: gnnd.refine(x, given),
        "graph  ": lambda: gnnd.append(x, given, x),
        "graph1": lambda: gnnd.merge(x, given, x, graph),
        "graph2": lambda: gnnd.merge(x, graph, x, given),
        "graph   ": lambda: gnnd.graph.search_links(x, given),
        "graph    ": lambda: gnnd.graph.symmetric_graph(given),
    }.items():
        with pytest.raises(TypeError, match=f"{name.strip()} {text}"):
            call()
    if wrong == "shards":
        with pytest.raises(TypeError, match=r"x must be a gnnd.Graph, not ShardedGraph; its to_graph\(\) is one"):
            gnnd.duplicates(given)
        given.save(tmp_path / "whole.gnnd")
    else:
        with pytest.raises(TypeError, match=text):
            gnnd.save(given, tmp_path / "whole.gnnd")


def test_a_graph_in_shards_is_pickled_by_its_path(folder, monkeypatch):
    monkeypatch.chdir(folder)
    graph = gnnd.load("graph")
    data = pickle.dumps(graph)
    monkeypatch.chdir("/")
    read = pickle.loads(data)
    assert isinstance(read, gnnd.ShardedGraph) and read.measured == graph.measured
    np.testing.assert_array_equal(read[:][0], graph[:][0])
    with pytest.raises(TypeError, match="begin must be an int, not float: 1.5"):
        graph.read(1.5, 2)


def test_what_the_package_checks_itself():
    assert _native.whole("a", np.int8(3), 0, 9) == 3 and _native.whole("a", -(2**63)) == -(2**63)
    assert _native.real("a", np.float32(0.5), 0, 1) == 0.5 and _native.bytes_of("a", "1.5K") == 1536
    for call, error, text in (
        (lambda: _native.whole("a", 10, 0, 9), ValueError, "a = 10, allowed are 0 to 9"),
        (lambda: _native.whole("a", -1, 0), ValueError, "a = -1, allowed are 0 and more"),
        (lambda: _native.real("a", NAN, 0, 0.1), ValueError, "a = nan, allowed are 0 to 0.1"),
        (lambda: _native.real("a", 1j, 0, 1), TypeError, "a must be a number, not complex: 1j"),
    ):
        with pytest.raises(error, match=text):
            call()
