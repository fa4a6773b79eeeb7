# SPDX-License-Identifier: MIT
"""Builds, merges, measurements, and what goes wrong in them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnd
from conftest import check_graph, recall_of, values
from gnnd import _native


@pytest.mark.parametrize("metric", gnnd.metrics)
def test_the_graph_has_the_recall_that_it_says(x, metric):
    x = np.abs(x) + 0.1 if metric == "chi2" else x
    graph = gnnd.build(x, k=12, metric=metric)
    check_graph(graph, x, metric)
    assert graph.metric == metric and len(graph) == graph.n == 1200 and graph.k == 12
    assert graph.recall >= 0.99 or graph.stats["stop"] == "exact"
    low, high = graph.recall_interval
    assert low <= graph.recall <= high
    assert recall_of(graph, x, metric, 10) >= low - 0.01
    assert graph.stats["device"] in ("cpu", "cuda:0") and graph.stats["seconds"] > 0


def test_hard_data_get_the_same_promise():
    x = np.random.default_rng(1).normal(size=(3000, 64)).astype(np.float32)
    graph = gnnd.build(x, k=10)
    assert graph.recall >= 0.99 or graph.stats["stop"] == "exact"
    assert recall_of(graph, x, "l2", 10) >= 0.985


def test_cosines_that_float32_does_not_tell_apart_are_warned_of():
    x = np.random.default_rng(1).normal(size=(1000, 16)).astype(np.float32)
    assert gnnd.build(x, k=10, metric="cosine").stats["unresolved"] == 0
    with pytest.warns(RuntimeWarning, match="the cosines of 100% of the objects .* so near 1 that") as warned:
        graph = gnnd.build(x + 1000, k=10, metric="cosine")
    assert graph.stats["unresolved"] == 1 and warned[0].filename == __file__
    units = (x + 1000) / np.linalg.norm((x + 1000).astype(np.float64), axis=1, keepdims=True)
    assert recall_of(gnnd.build(units.astype(np.float32), k=10), units, "l2", 10) >= 0.99, "as the warning says"


def test_components_whose_products_float32_has_not_are_warned_of():
    x = np.random.default_rng(1).normal(size=(1000, 16)).astype(np.float32)
    for metric in ("l2", "ip"):
        with pytest.warns(RuntimeWarning, match="the components of 100% of the objects are so small that"):
            graph = gnnd.build(x * np.float32(1e-30), k=10, metric=metric)
        assert graph.stats["unresolved"] == 1
    small = np.abs(x) * np.float32(1e-30)
    assert recall_of(gnnd.build(small, k=10, metric="chi2"), small.astype(np.float64) * 1e30, "chi2", 10) >= 0.99


def test_all_pairs_are_exact(x):
    graph = gnnd.build_exact(x, k=9)
    check_graph(graph, x, "l2")
    assert recall_of(graph, x, "l2", 9) == 1 and graph.recall == 1 and graph.stats["stop"] == "exact"
    assert gnnd.build(x, k=9, recall=1).stats["stop"] == "exact"


def test_paper_rule_measures_nothing(x):
    graph = gnnd.build(x, k=10, recall=0, iterations=2, samples=5)
    assert graph.recall is None and graph.recall_interval is None and graph.measured is None
    assert graph.stats["stop"] in ("converged", "iterations")
    assert "not measured" in repr(graph)


def test_a_seed_gives_one_graph_on_the_cpu(x):
    graphs = [gnnd.build(x, k=8, seed=7, device="cpu", threads=threads) for threads in (1, 2)]
    np.testing.assert_array_equal(graphs[0].ids, graphs[1].ids)
    assert gnnd.build(x, k=8, seed=8, recall=0, iterations=1, device="cpu").ids.tolist() != graphs[0].ids.tolist()


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 70),
    d=st.integers(1, 9),
    k=st.integers(1, 40),
    metric=st.sampled_from(gnnd.metrics),
    dtype=st.sampled_from(["float32", "float16", "uint8", "int8", "float64"]),
    seed=st.integers(0, 9),
)
def test_any_shape(n, d, k, metric, dtype, seed):
    random = np.random.default_rng(seed)
    x = random.integers(1, 100, size=(n, d)).astype(dtype)
    graph = gnnd.build(x, k=k, metric=metric)
    check_graph(graph, x, metric, tolerance=1e-3)


def test_copies_of_one_vector():
    graph = gnnd.build(np.ones((500, 4), np.float32), k=6)
    assert (graph.distances == 0).all()
    check_graph(graph, np.ones((500, 4)), "l2")


def test_refine_mends_a_bad_graph(x):
    random = np.random.default_rng(3)
    ids = np.array([random.choice(1200, 10, replace=False) for _ in range(1200)])
    start = gnnd.Graph(ids, np.zeros(ids.shape), "l2")  # int64 ids, wrong distances, selves
    better = gnnd.refine(x, start)
    check_graph(better, x, "l2")
    assert better.k == 10 and better.recall >= 0.99
    assert gnnd.refine(x, better, k=5).k == 5


def test_merge_and_append(x):
    first, second = x[:700], x[700:]
    graphs = gnnd.build(first, k=10), gnnd.build(second, k=8)
    for one, other in ((0, 1), (1, 0)):
        bases = (first, second)[one], (first, second)[other]
        merged = gnnd.merge(bases[0], graphs[one], bases[1], graphs[other])  # to the smaller k of both
        check_graph(merged, np.concatenate(bases), "l2")
        assert merged.k == 8 and recall_of(merged, np.concatenate(bases), "l2", 8) >= 0.985
    merged = gnnd.merge(first, graphs[0], second, graphs[1], k=10)
    check_graph(merged, x, "l2")
    assert merged.k == 10 and recall_of(merged, x, "l2", 10) >= 0.985
    for method in ("auto", "search", "merge"):
        grown = gnnd.append(first, gnnd.build(first, k=16), second, method=method)
        check_graph(grown, x, "l2")
        assert grown.k == 16 and recall_of(grown, x, "l2", 10) >= 0.985
    assert gnnd.append(first, gnnd.build(first, k=16), second[:1]).n == 701
    none_added = gnnd.append(first, gnnd.build(first, k=4), second[:0])
    assert none_added.n == 700


def test_merges_and_appends_want_right_distances(x):
    first, second = x[:600], x[600:]
    good, other = gnnd.build(first, k=8), gnnd.build(second, k=8)
    euclidean = gnnd.Graph(good.ids, np.sqrt(good.distances))
    message = "its distances are not those of the vectors in"
    for wrong in (euclidean, other):  # of another metric, and of other vectors, as many
        with pytest.raises(ValueError, match=f"graph1: {message} x1: of 600 compared"):
            gnnd.merge(first, wrong, second, other)
        with pytest.raises(ValueError, match=f"graph2: {message} x2"):
            gnnd.merge(second, other, first, wrong)
        for method in ("auto", "search", "merge"):
            with pytest.raises(ValueError, match=f"graph: {message} x"):
                gnnd.append(first, wrong, second, method=method)
    few = gnnd.Graph(good.ids, np.where(np.arange(600)[:, None] % 3 == 0, 0, good.distances))
    assert gnnd.merge(first, few, second, other).n == 1200  # most agree


def test_merge_wants_one_metric(x):
    with pytest.raises(ValueError, match="two metrics: l2 and cosine"):
        gnnd.merge(x, gnnd.build(x, k=3), x, gnnd.build(x, k=3, metric="cosine"))


def test_wrong_vectors_and_objects_are_named(x):
    for path in ("x.npy", b"x.npy", Path("x.npy"), None):
        with pytest.raises(TypeError, match=re.escape(f"x is {path!r}; vectors are an array")):
            gnnd.build(path, k=4)
    for bad, message in (
        ([0, -1], "objects[1] = -1, allowed are 0 to 999"),
        (np.array([1000]), "objects[0] = 1000, allowed are 0 to 999"),
        ([], "objects holds none; allowed are one and more"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            gnnd.exact_neighbors(x[:1000], bad, k=4)


def test_exact_neighbors_of_some(x):
    ids, distances = gnnd.exact_neighbors(x, [5, 0, 5], k=4)
    expected = values(x, "l2")
    np.fill_diagonal(expected, np.inf)
    order = np.argsort(expected, axis=1)[:, :4]
    np.testing.assert_array_equal(ids, order[[5, 0, 5]])
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[[5, 0, 5], :4], rtol=1e-4)
    for bad, error in (
        ([], ValueError),
        ([1200], ValueError),
        ([-1], ValueError),
        ([0.5], TypeError),
        ([[1]], ValueError),
    ):
        with pytest.raises(error):
            gnnd.exact_neighbors(x, bad, k=4)


def test_eval_measures(x):
    graph = gnnd.build(x, k=10)
    recall = gnnd.eval(graph, x, objects=0)
    assert recall.objects == 1200 and recall.at == 10
    assert recall.low == recall.value == recall.high == pytest.approx(recall_of(graph, x, "l2", 10), abs=1e-3)
    worse = gnnd.Graph(np.roll(graph.ids, 1, axis=0), np.full(graph.ids.shape, 1e9), "l2")
    assert gnnd.eval(worse, x, objects=200, at=5).value < 0.2
    with pytest.raises(ValueError, match="at = 11"):
        gnnd.eval(graph, x, at=11)
    with pytest.raises(ValueError, match="1199 vectors"):
        gnnd.eval(graph, x[:-1])
    with pytest.raises(ValueError, match="objects = -1"):
        gnnd.eval(graph, x, objects=-1)


def test_eval_believes_no_distance(x):
    """Distances that say whatever they like, of neighbours that were drawn."""
    random = np.random.default_rng(0)
    graph, drawn = gnnd.build_exact(x, k=10), random.integers(0, 1200, size=(1200, 10))
    for value in (0, -1, np.inf, np.nan):
        distances = np.full(drawn.shape, value)
        assert gnnd.eval(gnnd.Graph(drawn, distances), x, objects=300).value < 0.1
        assert gnnd.eval(gnnd.Graph(graph.ids, distances), x, objects=300).value == 1
    copies = np.repeat(graph.ids[:, :1], 10, axis=1)
    assert gnnd.eval(gnnd.Graph(copies, np.zeros(copies.shape)), x).value == pytest.approx(0.1)
    selves = np.repeat(np.arange(1200)[:, None], 10, axis=1)
    assert gnnd.eval(gnnd.Graph(selves, np.zeros(selves.shape)), x).value == 0
    assert gnnd.eval(gnnd.Graph(np.full_like(selves, -1), np.zeros(selves.shape)), x).value == 0


@pytest.mark.parametrize("junk", [1200, 2**31 - 1, -2])
def test_eval_tells_of_ids_that_are_no_vectors(x, junk):
    graph = gnnd.build_exact(x, k=10)
    graph.ids[77, 3] = junk
    with pytest.raises(ValueError, match=f"row of object 77 holds id {junk} of 1200"):
        gnnd.eval(graph, x)


def test_eval_samples_what_no_build_has_seen(x):
    """A graph that is right for the objects that its build has drawn, and for no others."""
    seen = _native.sample_objects(1200, 100, 1234)
    ids, right = np.full((1200, 10), -1), gnnd.build_exact(x, k=10).ids
    ids[seen] = right[seen]
    found = gnnd.eval(gnnd.Graph(ids, np.zeros(ids.shape)), x, objects=100)
    assert found.objects == 100 and found.low < 100 / 1200 < found.high < 0.3


def test_plan_allocates_nothing():
    plan = gnnd.plan(1_000_000_000, 128, "uint8", k=64, device="cpu")
    assert plan["graph"] == 1_000_000_000 * 64 * 8 and plan["total"] > plan["graph"]
    for bad in ((-1, 4), (1, 4), (2**31, 4), (10, 0), (10, -3)):
        with pytest.raises(ValueError, match="vectors"):
            gnnd.plan(*bad)
    with pytest.raises(TypeError, match="int32"):
        gnnd.plan(10, 4, "int32")
    assert plan["device"] == "cpu" and plan["why"]


def test_every_parameter_is_taken(x):
    names = gnnd.parameters()
    assert {"k", "metric", "recall", "seed", "device"} <= set(names)
    for name, (text, default) in names.items():
        assert text
        if name not in ("k", "metric", "recall", "device"):
            assert gnnd.build(x[:50], k=3, **{name: default}).n == 50
    assert names["recall"][1] == 0.99 and names["k"][1] == 32


@pytest.mark.parametrize(
    "params, error, text",
    [
        ({"k": 0}, ValueError, "k = 0"),
        ({"k": 1025}, ValueError, "^k = 1025, allowed are 1 to 1024"),
        ({"k": 2.0}, TypeError, "k must be an int, not float"),
        ({"k": True}, TypeError, "k must be an int, not bool"),
        ({"k": 2**70}, ValueError, "k"),
        ({"recall": 1.5}, ValueError, "recall"),
        ({"recall": float("nan")}, ValueError, "recall"),
        ({"recall": "0.9"}, TypeError, "recall must be a number, not str"),
        ({"recall_at": 40}, ValueError, "recall_at"),
        ({"metric": "euclidean"}, ValueError, "known are l2, ip"),
        ({"metric": 1}, TypeError, "metric must be a str"),
        ({"device": "tpu"}, ValueError, "unknown device 'tpu'"),
        ({"device": "cuda:99"}, RuntimeError, "cuda:99"),
        ({"seed": -1}, ValueError, "seed"),
        ({"deterministic": 1}, TypeError, "deterministic must be a bool"),
        ({"neighbors": 3}, TypeError, "unknown parameter 'neighbors'; known are k, metric"),
        ({"progress": 3}, TypeError, "progress"),
    ],
)
def test_parameters_out_of_range(x, params, error, text):
    with pytest.raises(error, match=text):
        gnnd.build(x, **params)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_vector_is_named(x, bad):
    broken = x.copy()
    broken[77, 3] = bad
    with pytest.raises(ValueError, match="vector 77"):
        gnnd.build(broken, k=5)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0, None])
def test_vectors_that_change_meanwhile_end_no_process(x, value):
    """What is in the graph is not known: an entry may even be there twice, by two distances."""
    random = np.random.default_rng(0)
    changing, changes = x.copy(), []

    def change(progress):
        changes.append(progress)
        changing[::2] = random.normal(size=changing[::2].shape) if value is None else value

    graph = gnnd.build(changing, k=10, recall=0, iterations=4, device="cpu", progress=change)
    assert changes and graph.ids.min() >= 0 and graph.ids.max() < 1200
    assert np.isfinite(graph.distances).all()
    assert gnnd.build(x, k=10, device="cpu").recall >= 0.99
