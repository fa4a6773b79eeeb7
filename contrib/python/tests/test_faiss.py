# SPDX-License-Identifier: MIT
"""gnnd.faiss against the FAISS that is installed: vectors out of every kind of index, graphs into its graph indexes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from conftest import clustered

faiss = pytest.importorskip("faiss")

import gnnd.faiss  # noqa: E402

N, D = 1500, 16
ADAPTERS = {
    "nsg": gnnd.faiss.to_nsg,
    "hnsw": gnnd.faiss.to_hnsw,
    "hnsw_cagra": gnnd.faiss.to_hnsw_cagra,
    "nndescent": gnnd.faiss.to_nndescent,
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return gaussian(N)


def gaussian(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, D)).astype(np.float32)


def recall(index, queries: np.ndarray, x: np.ndarray, k: int = 10) -> float:
    """By distance, so that ties count whichever was found."""
    truth = faiss.knn(queries, x, k, metric=index.metric_type)[0]
    found = index.search(queries, k)[0]
    sign = -1 if index.metric_type == faiss.METRIC_INNER_PRODUCT else 1
    return float((sign * found <= sign * truth[:, -1:] + 1e-4 * np.abs(truth[:, -1:]) + 1e-5).mean())


def wrap(kind: str, x: np.ndarray):
    """An index of the kind, and the rows that it is to give back; None: about those of x."""
    d = x.shape[1]
    if kind == "IDMap":
        index = faiss.IndexIDMap2(faiss.IndexFlatL2(d))
        index.add_with_ids(x, np.arange(len(x))[::-1] * 10)
        return index, x
    if kind in ("IDMap,IVF16,Flat", "IVF ids"):
        index = faiss.index_factory(d, kind if kind != "IVF ids" else "IVF16,Flat")
        index.train(x)
        index.add_with_ids(x, np.arange(len(x)) + 7 if kind != "IVF ids" else np.arange(len(x))[::-1] * 10)
        return index, x if kind != "IVF ids" else x[::-1]
    if kind == "NNDescent":
        index = faiss.IndexNNDescentFlat(d, 16)
        index.add(x)
        return index, x
    index = faiss.index_factory(d, kind)
    index.train(x)
    index.add(x)
    if kind.startswith("PCA"):
        return index, faiss.downcast_VectorTransform(index.chain.at(0)).apply(x)
    return index, None if any(code in kind for code in ("SQ", "PQ")) else x


KINDS = ["Flat", "IDMap", "IDMap,IVF16,Flat", "IVF ids", "IVF16,Flat", "HNSW16", "NSG16", "NNDescent", "PCA8,Flat"]
CODES = ["SQ8", "SQfp16", "IVF16,SQ8", "PQ8x4", "SQ8,RFlat", "HNSW16_SQ8"]


@pytest.mark.parametrize("kind", KINDS + CODES)
def test_vectors_come_out(kind: str, x: np.ndarray) -> None:
    index, expected = wrap(kind, x)
    found = gnnd.faiss.vectors(index)
    assert found.shape == (N, 8 if kind.startswith("PCA") else D) and found.dtype == np.float32
    if expected is None:
        np.testing.assert_allclose(found, x, atol=4 if "PQ" in kind else 0.2)
    else:
        np.testing.assert_array_equal(found, expected)
    assert gnnd.faiss.metric(index) == "l2"
    ids = gnnd.faiss.ids(index)
    assert ids.dtype == np.int64 and len(ids) == N
    if kind in ("IDMap", "IVF ids"):
        np.testing.assert_array_equal(ids, np.arange(N)[::-1] * 10 if kind == "IDMap" else np.arange(N) * 10)
    elif kind == "IDMap,IVF16,Flat":
        np.testing.assert_array_equal(ids, np.arange(N) + 7)
    else:
        np.testing.assert_array_equal(ids, np.arange(N))


def test_a_flat_index_is_viewed(x: np.ndarray) -> None:
    index = faiss.IndexFlatIP(D)
    index.add(x)
    view = gnnd.faiss.vectors(index)
    assert view.ctypes.data == int(index.get_xb()) and not view.flags.writeable
    assert gnnd.faiss.metric(index) == "ip"
    del index  # the view keeps it
    gc.collect()
    spoil = [np.full((N, D), np.nan, np.float32) for _ in range(10)]
    np.testing.assert_array_equal(view, x)
    del spoil
    graph = gnnd.build(view, 10, "ip")
    assert graph.n == N


def test_indexes_without_vectors(x: np.ndarray) -> None:
    with pytest.raises(ValueError, match="empty"):
        gnnd.faiss.vectors(faiss.IndexFlatL2(D))
    with pytest.raises(ValueError, match="not trained"):
        gnnd.faiss.vectors(faiss.index_factory(D, "IVF16,Flat"))
    shards, shard = faiss.IndexShards(D), faiss.IndexFlatL2(D)
    shard.add(x)
    shards.add_shard(shard)
    with pytest.raises(ValueError, match="IndexShards cannot reconstruct"):
        gnnd.faiss.vectors(shards)
    with pytest.raises(TypeError, match="ndarray"):
        gnnd.faiss.vectors(x)
    with pytest.raises(TypeError, match="IndexBinaryFlat"):
        gnnd.faiss.vectors(faiss.IndexBinaryFlat(64))
    canberra = faiss.IndexFlat(D, faiss.METRIC_Canberra)
    canberra.add(x)
    with pytest.raises(ValueError, match="no counterpart"):
        gnnd.faiss.metric(canberra)


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine", "l1", "linf"])
@pytest.mark.parametrize("name", list(ADAPTERS))
def test_a_graph_becomes_an_index(name: str, metric: str, x: np.ndarray) -> None:
    graph = gnnd.build(x, 40, metric)
    if name == "hnsw_cagra" and metric in ("l1", "linf"):
        with pytest.raises(ValueError, match=metric):
            gnnd.faiss.to_hnsw_cagra(x, graph)
        return
    index = ADAPTERS[name](x, graph)
    assert index.ntotal == N and index.is_trained
    queries, rows = gaussian(200), x.copy()
    if metric == "cosine":
        faiss.normalize_L2(queries)
        faiss.normalize_L2(rows)
    np.testing.assert_allclose(gnnd.faiss.vectors(index), rows, rtol=1e-6)
    assert recall(index, queries, rows) > 0.95
    if name != "nndescent":  # which starts at random
        found = index.search(queries, 10)[1]
        again = faiss.deserialize_index(faiss.serialize_index(index))
        np.testing.assert_array_equal(again.search(queries, 10)[1], found)


@pytest.mark.parametrize("data", ["clustered", "gaussian"])
def test_recall_beside_faiss_own(data: str) -> None:
    """At equal degrees and widths of the beam. Clusters far apart are joined by few links, and searches miss more."""
    if data == "clustered":
        both = clustered(2800, 24)
    else:
        both = np.random.default_rng(2).normal(size=(2800, 24)).astype(np.float32)
    x, queries = both[:2500], both[2500:]
    graph = gnnd.build(x, 64)
    nsg, hnsw = gnnd.faiss.to_nsg(x, graph), gnnd.faiss.to_hnsw(x, graph)
    own_nsg, own_hnsw = faiss.IndexNSGFlat(24, 32), faiss.IndexHNSWFlat(24, 16)
    own_nsg.add(x)
    own_hnsw.add(x)
    own_nsg.nsg.search_L, own_hnsw.hnsw.efSearch = nsg.nsg.search_L, hnsw.hnsw.efSearch
    less = 0.02 if data == "gaussian" else 0.25
    assert recall(nsg, queries, x) > recall(own_nsg, queries, x) - less
    assert recall(hnsw, queries, x) > recall(own_hnsw, queries, x) - less


@pytest.mark.parametrize("case", ["all equal", "islands", "two"])
def test_all_are_reached(case: str) -> None:
    if case == "all equal":
        x = np.ones((500, 3), np.float32)
    elif case == "two":
        x = np.eye(2, dtype=np.float32)
    else:  # far apart, so that no neighbour of one is on another
        centres = np.arange(40)[:, None, None] * 1000
        x = (centres + np.random.default_rng(0).normal(size=(40, 50, 3))).astype(np.float32).reshape(-1, 3)
    graph = gnnd.build(x, min(8, len(x) - 1))
    index = gnnd.faiss.to_hnsw(x, graph)
    neighbors = faiss.vector_to_array(index.hnsw.neighbors)
    links = neighbors[faiss.vector_to_array(index.hnsw.offsets)[:-1, None].astype(int) + np.arange(32)]
    reached, new = {index.hnsw.entry_point}, [index.hnsw.entry_point]
    while new:
        new = [int(i) for i in np.unique(links[new]) if i >= 0 and i not in reached]
        reached.update(new)
    assert len(reached) == len(x)
    # An NSG's searches start from random objects, too, on whichever islands these lie.
    for made, found in ((index, 0.97), (gnnd.faiss.to_nsg(x, graph), 0.9)):
        assert (made.search(x, 1)[0] == 0).mean() > found


def test_searches_come_down_the_levels_of_an_hnsw() -> None:
    x = np.random.default_rng(3).permutation(5000).astype(np.float32)[:, None]
    index = gnnd.faiss.to_hnsw(x, gnnd.build(x, 32), M=8)
    levels = faiss.vector_to_array(index.hnsw.levels)
    assert [int((levels > level).sum()) for level in range(4)] == [5000, 625, 78, 9]
    assert index.hnsw.max_level == 3 and levels[index.hnsw.entry_point] == 4
    index.hnsw.efSearch = 1
    assert (index.search(x, 1)[0] == 0).mean() > 0.95  # in so few steps that none walks far


def test_short_rows_of_cagra_are_filled() -> None:
    x = clustered(40, 5)
    for n, degree in ((40, 32), (33, 32), (5, 4)):
        index = gnnd.faiss.to_hnsw_cagra(x[:n], gnnd.build(x[:n], 2), degree)
        links = faiss.rev_swig_ptr(index.hnsw.neighbors.data(), n * degree).reshape(n, degree)
        assert links.min() >= 0 and links.max() < n
        assert all(len(set(row)) == degree and i not in row for i, row in enumerate(links))


def test_vectors_of_other_types_and_indexes(x: np.ndarray) -> None:
    bytes_ = np.clip(x * 10 + 128, 0, 255).astype(np.uint8)
    of_bytes = gnnd.faiss.to_nsg(bytes_, gnnd.build(bytes_, 20))
    np.testing.assert_array_equal(gnnd.faiss.vectors(of_bytes), bytes_)
    flat = faiss.IndexFlatL2(D)
    flat.add(x)
    before = x.copy()
    graph = gnnd.build(x, 20, "cosine")
    gnnd.faiss.to_hnsw(flat, graph)  # normalises a copy
    np.testing.assert_array_equal(gnnd.faiss.vectors(flat), before)
    first, second = (gnnd.faiss.to_hnsw(x, graph, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(faiss.serialize_index(first), faiss.serialize_index(second))


def test_what_does_not_fit(x: np.ndarray) -> None:
    graph = gnnd.build(x, 8)
    with pytest.raises(ValueError, match="1499 vectors"):
        gnnd.faiss.to_nsg(x[1:], graph)
    with pytest.raises(ValueError, match="dimensions"):
        gnnd.faiss.to_nsg(x[0], graph)
    with pytest.raises(ValueError, match="R = 0"):
        gnnd.faiss.to_nsg(x, graph, 0)
    with pytest.raises(ValueError, match="M = 1"):
        gnnd.faiss.to_hnsw(x, graph, 1)
    with pytest.raises(ValueError, match="efSearch = 0"):
        gnnd.faiss.to_hnsw(x, graph, efSearch=0)
    with pytest.raises(ValueError, match="not even"):
        gnnd.faiss.to_hnsw_cagra(x, graph, 15)
    with pytest.raises(ValueError, match="chi2"):
        gnnd.faiss.to_nsg(np.abs(x), gnnd.build(np.abs(x), 8, "chi2"))
    inner = faiss.IndexFlatIP(D)
    inner.add(x)
    with pytest.raises(ValueError, match="under l2 for an index under ip"):
        gnnd.faiss.to_nsg(inner, graph)
    spoilt = x.copy()
    spoilt[17, 3] = np.nan
    with pytest.raises(ValueError, match="17"):
        gnnd.faiss.to_nsg(spoilt, graph)
    damaged = gnnd.Graph(graph.ids.copy(), graph.distances.copy())
    damaged.ids[5, 1] = damaged.ids[5, 0]
    with pytest.raises(ValueError, match="5"):
        gnnd.faiss.to_hnsw(x, damaged)
    holes = gnnd.Graph(graph.ids.copy(), graph.distances.copy())
    holes.ids[9, -1], holes.distances[9, -1] = -1, np.inf
    with pytest.raises(ValueError, match="9"):
        gnnd.faiss.to_nndescent(x, holes)
    if not hasattr(faiss, "GpuIndexCagra"):
        with pytest.raises(RuntimeError, match="no GpuIndexCagra"):
            gnnd.faiss.to_cagra(x, graph)


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_cagra_on_a_gpu(metric: str) -> None:
    if not hasattr(faiss, "GpuIndexCagra") or faiss.get_num_gpus() == 0:
        pytest.skip("needs a FAISS with cuVS, and a GPU")
    x = clustered(20_000, 24)
    graph = gnnd.build(x, 48, metric)
    index = gnnd.faiss.to_cagra(x, graph, 32)
    rows = x / np.linalg.norm(x, axis=1, keepdims=True) if metric == "cosine" else x
    given = rows[:1000]
    true = faiss.knn(given, rows, 10, metric=index.metric_type)[1]
    params = faiss.SearchParametersCagra()
    params.itopk_size = 128
    found = index.search(given, 10, params=params)[1]
    assert np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, true, strict=True)]) >= 9.5


def test_metrics_have_faiss_s_numbers() -> None:
    """The library's numbers are those of the FAISS that is imported."""
    numbers = {
        "l2": faiss.METRIC_L2,
        "ip": faiss.METRIC_INNER_PRODUCT,
        "cosine": faiss.METRIC_INNER_PRODUCT,
        "l1": faiss.METRIC_L1,
        "linf": faiss.METRIC_Linf,
    }
    assert numbers == gnnd.faiss._FAISS_METRICS
