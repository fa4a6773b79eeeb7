# SPDX-License-Identifier: MIT
"""gnnd.graph beside naive references, and gnnd.hdbscan, which joins components; the operations' own tests are C++'s."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gnnd
import gnnd.graph
from conftest import clustered, values
from gnnd import _native

scipy_sparse = pytest.importorskip("scipy.sparse")
METRICS = ["l2", "cosine", "l1", "linf"]


def distance_matrix(x: np.ndarray, metric: str) -> np.ndarray:
    pairs = values(x, metric)
    return {"l2": lambda: np.sqrt(pairs), "cosine": lambda: 1 - pairs}.get(metric, lambda: pairs)()


@pytest.fixture(scope="module", params=METRICS)
def case(request):
    x = clustered(300, 6)
    return gnnd.build_exact(x, 8, request.param), distance_matrix(x, request.param)


def dense(graph: gnnd.Graph, distances: np.ndarray) -> np.ndarray:
    """The k-NN graph as a matrix, inf where there is no entry."""
    matrix = np.full(distances.shape, np.inf)
    np.put_along_axis(matrix, graph.ids, np.take_along_axis(distances, graph.ids, 1), 1)
    return matrix


def check(found, expected: np.ndarray) -> None:
    assert scipy_sparse.issparse(found) and found.has_sorted_indices
    coo = found.tocoo()
    matrix = np.full(expected.shape, np.inf)
    matrix[coo.row, coo.col] = coo.data
    np.testing.assert_array_equal(np.isfinite(matrix), np.isfinite(expected))
    there = np.isfinite(expected)
    np.testing.assert_allclose(matrix[there], expected[there], rtol=1e-4, atol=1e-5)


def test_matrices(case) -> None:
    graph, distances = case
    own = dense(graph, distances)
    check(gnnd.graph.neighbors_graph(graph), own)
    first = gnnd.Graph(graph.ids[:, :3], graph.distances[:, :3], graph.metric)
    check(gnnd.graph.neighbors_graph(graph, neighbors=3), dense(first, distances))
    check(gnnd.graph.symmetric_graph(graph), np.minimum(own, own.T))
    check(gnnd.graph.mutual_graph(graph, threads=3), np.maximum(own, own.T))
    radius = float(np.median(own[np.isfinite(own)])) + 1e-4
    near = np.where(own <= radius, own, np.inf)
    check(gnnd.graph.symmetric_graph(graph, radius=radius), np.minimum(near, near.T))
    assert gnnd.graph.full_rows(graph, radius=radius) == ((own <= radius).sum(1) == 8).sum()
    core = np.sort(own, 1)[:, 3]
    np.testing.assert_allclose(gnnd.graph.core_distances(graph, min_samples=4), core, rtol=1e-4, atol=1e-5)
    union = np.minimum(own, own.T)
    reach = np.where(np.isfinite(union), np.maximum(np.maximum(core, core[:, None]), union), np.inf)
    check(gnnd.graph.mutual_reachability_graph(graph, min_samples=4), reach)


def test_weights(case) -> None:
    graph, distances = case
    joined = np.isfinite(dense(graph, distances))
    shared = joined.astype(int) @ joined.T.astype(int)
    jaccard = shared / (16 - shared)
    expected = np.where((joined | joined.T) & (shared > 0), jaccard, np.inf)
    check(gnnd.graph.jaccard_graph(graph), expected)
    fuzzy = gnnd.graph.fuzzy_simplicial_set(graph)
    assert (fuzzy != fuzzy.T).nnz == 0 and fuzzy.data.min() > 0 and fuzzy.data.max() <= 1
    assert (np.asarray(fuzzy.max(axis=1).todense()) > 0.999).all()  # the nearest has weight 1
    directed = gnnd.graph.fuzzy_simplicial_set(graph, set_op_mix_ratio=0.0)
    assert (directed.toarray() <= fuzzy.toarray() + 1e-6).all()


def test_components_are_scipys(case) -> None:
    graph, _ = case
    for neighbors in (1, 2, 8):
        count, labels = gnnd.graph.connected_components(graph, neighbors=neighbors)
        matrix = gnnd.graph.symmetric_graph(graph, neighbors=neighbors)
        matrix.data += 1
        expected = scipy_sparse.csgraph.connected_components(matrix, directed=False)
        assert count == expected[0]
        np.testing.assert_array_equal(labels, expected[1])


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_duplicates(metric: str) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 8)).astype(np.float32)
    x[100:150] = x[7] * (3 if metric == "cosine" else 1)  # more than k copies
    x[200] = x[3] + 1e-5
    found = gnnd.duplicates(x, 1e-3, metric=metric, k=10, recall=1)
    assert set(np.flatnonzero(found.labels >= 0)) == {3, 7, 200, *range(100, 150)}
    assert sorted(found.sizes) == [2, 51] and list(found.firsts) == [3, 7] and found.full == 0
    assert len(found.kept()) == 400 - 51 and 3 in found.kept() and 200 not in found.kept()
    again = gnnd.graph.duplicates(gnnd.build_exact(x, 10, metric), 1e-3)
    np.testing.assert_array_equal(again.labels, found.labels)
    assert again.full == 51
    assert len(gnnd.duplicates(x[:50], 0, metric=metric).sizes) == 0


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_thousand_copies_are_one_group(dtype: str) -> None:
    x = (clustered(6000, 12) * 10 + 128).clip(0, 255).astype(dtype)
    x[1000:2000] = x[5]
    x[3000:5000:2] = x[6]
    expected = np.arange(6000)
    expected[1000:2000], expected[3000:5000:2] = 5, 6
    np.testing.assert_array_equal(gnnd.graph.equal_rows(x), expected)
    found = gnnd.duplicates(x, 0, k=8)
    assert sorted(found.sizes) == [1001, 1001] and list(found.firsts) == [5, 6] and found.full == 0
    assert (found.labels[1000:2000] == found.labels[5]).all() and (found.labels[3000:5000:2] == found.labels[6]).all()
    graph = gnnd.build(x, 8, recall=0.5, iterations=2)
    joined = gnnd.duplicates(graph, 0, base=x)
    np.testing.assert_array_equal(joined.labels, found.labels)
    assert joined.full >= 2002  # its rows are full of copies all the same
    assert len(gnnd.duplicates(x, -1).sizes) == len(gnnd.duplicates(graph, -1, base=x).sizes) == 0
    with pytest.raises(ValueError, match="6000 objects for 5999 vectors"):
        gnnd.duplicates(graph, 0, base=x[1:])
    with pytest.raises(TypeError, match="base is for a graph"):
        gnnd.duplicates(x, 0, base=x)


def test_all_rows_are_equal() -> None:
    found = gnnd.duplicates(np.ones((300, 4), np.float32))
    assert list(found.sizes) == [300] and list(found.firsts) == [0] and found.full == 0


def test_links_of_a_line_lead_far() -> None:
    x = np.arange(3000, dtype=np.float32)[:, None]
    graph = gnnd.build(x, 64)
    for entry, least, most in ((None, 1, 64), (1500, 65, 3000)):
        links = gnnd.graph.search_links(x, graph, 16, entry=entry)
        farthest = np.where(links >= 0, np.abs(links - np.arange(3000)[:, None]), 0).max(1)
        assert least <= np.median(farthest) and farthest.max() <= most


def test_wrong_arguments() -> None:
    x = clustered(100, 4)
    graph = gnnd.build(x, 5)
    with pytest.raises(TypeError, match="ndarray"):
        gnnd.graph.symmetric_graph(x)
    with pytest.raises(ValueError, match="neighbors"):
        gnnd.graph.symmetric_graph(graph, neighbors=6)
    with pytest.raises(ValueError, match="'squared'"):
        gnnd.graph.symmetric_graph(graph, values="squared")
    with pytest.raises(ValueError, match="radius"):
        gnnd.graph.symmetric_graph(graph, radius=float("nan"))
    with pytest.raises(ValueError, match="min_samples"):
        gnnd.graph.core_distances(graph, min_samples=6)
    with pytest.raises(ValueError, match="degree = 0"):
        gnnd.graph.search_links(x, graph, 0)
    with pytest.raises(ValueError, match="entry = 100"):
        gnnd.graph.search_links(x, graph, entry=100)
    for operation in (gnnd.graph.symmetric_graph, gnnd.duplicates, gnnd.graph.core_distances):
        with pytest.raises(ValueError, match="'gpu'"):
            operation(graph, device="gpu")
        with pytest.raises(RuntimeError, match="cuda:99"):
            operation(graph, device="cuda:99")
        with pytest.raises(TypeError, match="place|recall"):
            operation(graph, **{"recall" if operation is gnnd.duplicates else "place": 1})
    damaged = gnnd.Graph(graph.ids.copy(), graph.distances.copy())
    damaged.ids[42, 0] = 42
    with pytest.raises(ValueError, match="42"):
        gnnd.graph.mutual_graph(damaged)


def test_a_device_is_named() -> None:
    graph = gnnd.build(clustered(300, 6), 8)
    expected = gnnd.graph.symmetric_graph(graph)
    assert (gnnd.graph.symmetric_graph(graph, device="cpu") != expected).nnz == 0
    if _native.device_count()[0] == 0:
        with pytest.raises(RuntimeError, match="cuda:0"):
            gnnd.graph.symmetric_graph(graph, device="cuda")
    else:
        there = gnnd.graph.symmetric_graph(graph, device="cuda")  # and back
        np.testing.assert_array_equal(there.indptr, expected.indptr)
        np.testing.assert_array_equal(there.indices, expected.indices)
        np.testing.assert_array_equal(there.data, expected.data)


class Cupy:
    """Of cupy and cupyx.scipy.sparse what is asked for; arrays are numpy's and the matrix is SciPy's."""

    asarray, int32 = staticmethod(np.asarray), np.int32
    csr_matrix = scipy_sparse.csr_matrix


def test_a_matrix_becomes_other_libraries(monkeypatch) -> None:
    """One of arrays on the host; test_gpu.py has the same of a GPU's."""
    expected = gnnd.graph.symmetric_graph(gnnd.build(clustered(300, 6), 8))
    csr = gnnd.graph.Csr(expected.indptr.astype(np.int64), expected.indices, expected.data)
    assert (csr.on_host() != expected).nnz == 0 and csr.shape == (300, 300)
    for name in ("cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, Cupy)
    made = csr.to_cupy()
    assert (made != expected).nnz == 0 and made.indptr.dtype == np.int32
    assert np.shares_memory(made.data, csr.data) and np.shares_memory(made.indices, csr.indices)
    large = csr._replace(data=np.broadcast_to(np.float32(0), 2**31))
    with pytest.raises(ValueError, match="2147483648 entries"):
        large.to_cupy()


def test_without_scipy() -> None:
    """The arrays themselves, in a process where scipy cannot be imported; and gnnd imports none of its tools."""
    code = """
import sys
sys.modules["scipy"] = sys.modules["scipy.sparse"] = None
import gnnd, numpy as np
assert not {"sklearn", "faiss", "umap", "hdbscan", "pynndescent", "numba"} & set(sys.modules)
graph = gnnd.build(np.random.default_rng(0).normal(size=(60, 3)), 4)
csr = gnnd.graph.symmetric_graph(graph)
assert type(csr).__name__ == "Csr" and csr.shape == (60, 60)
assert csr.indptr[-1] == len(csr.indices) == len(csr.data)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "chebyshev"])
def test_reachability_is_connected(metric: str) -> None:
    """Clusters of sizes below and above those that are joined by one search; clusters are those of all distances."""
    cluster = pytest.importorskip("sklearn.cluster")
    if not hasattr(cluster, "HDBSCAN"):
        pytest.skip("this scikit-learn has no HDBSCAN")
    from sklearn.metrics import adjusted_rand_score, pairwise_distances

    import gnnd.hdbscan

    random = np.random.default_rng(1)
    sizes = [300, 150, 90, 40, 30, 20, 6]
    centres = random.normal(size=(len(sizes), 10)) * 30
    labels = np.repeat(np.arange(len(sizes)), sizes)
    x = (centres[labels] + random.normal(size=(len(labels), 10))).astype(np.float32)
    x[:12] = x[0]  # copies, at a reachability of 0
    matrix = gnnd.hdbscan.mutual_reachability(x, 5, metric, k=12)
    assert matrix.dtype == np.float64 and (matrix != matrix.T).nnz == 0 and matrix.data.min() > 0
    assert scipy_sparse.csgraph.connected_components(matrix)[0] == 1
    distances = pairwise_distances(x.astype(np.float64), metric=metric)
    core = np.sort(distances, axis=1)[:, 5]
    full = np.maximum(np.maximum(core, core[:, None]), distances)
    coo = matrix.tocoo()
    np.testing.assert_allclose(coo.data, full[coo.row, coo.col], rtol=1e-3, atol=1e-5)
    # The tree weighs what that of all pairs does, but for pairs that the graph lacks. (SciPy takes 0 as no entry.)
    np.fill_diagonal(full, 0)
    tree, expected = (scipy_sparse.csgraph.minimum_spanning_tree(one).sum() for one in (matrix, np.maximum(full, 1e-6)))
    assert expected * 0.999 <= tree <= expected * 1.02
    options = {"metric": "precomputed", "min_cluster_size": 5, "copy": True}
    found = cluster.HDBSCAN(min_samples=1, **options).fit_predict(matrix)
    assert adjusted_rand_score(cluster.HDBSCAN(min_samples=6, **options).fit_predict(distances), found) > 0.9


def test_reachability_of_wrong_arguments() -> None:
    import gnnd.hdbscan

    x = clustered(60, 4)
    with pytest.raises(ValueError, match="min_samples"):
        gnnd.hdbscan.mutual_reachability(x, 9, k=8)
    with pytest.raises(ValueError, match="x has 1 vectors, allowed are 2 and more"):
        gnnd.hdbscan.mutual_reachability(x[:1])
    with pytest.raises(ValueError, match="'hamming'"):
        gnnd.hdbscan.mutual_reachability(x, metric="hamming")
    with pytest.raises(ValueError, match="59 vectors"):
        gnnd.hdbscan.mutual_reachability(x[1:], graph=gnnd.build(x, 8))
