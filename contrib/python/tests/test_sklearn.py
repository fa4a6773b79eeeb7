# SPDX-License-Identifier: MIT
"""gnnd.sklearn: scikit-learn's own checks, its transformer as the reference, and pipelines that take the graphs."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import clustered

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.cluster import DBSCAN, SpectralClustering  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.manifold import TSNE, Isomap, trustworthiness  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402
from sklearn.neighbors import KNeighborsTransformer as SklearnsTransformer  # noqa: E402
from sklearn.neighbors import NearestNeighbors  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import gnnd  # noqa: E402
from gnnd._search import Searcher  # noqa: E402
from gnnd.sklearn import KNeighborsTransformer  # noqa: E402

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "minkowski"]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@parametrize_with_checks(
    [KNeighborsTransformer(n_neighbors=3), KNeighborsTransformer(n_neighbors=3, mode="connectivity")]
)
def test_scikit_learns_checks(estimator, check) -> None:
    check(estimator)


def rows_of(matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    assert (np.diff(matrix.indptr) == k).all()
    return matrix.indices.reshape(-1, k), matrix.data.reshape(-1, k)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_is_scikit_learns_matrix(metric: str, mode: str) -> None:
    x = clustered(700, 9).astype(np.float64)
    ours = KNeighborsTransformer(n_neighbors=7, metric=metric, mode=mode, recall=1).fit_transform(x)
    theirs = SklearnsTransformer(n_neighbors=7, metric=metric, mode=mode).fit_transform(x)
    assert ours.shape == theirs.shape and ours.nnz == theirs.nnz and ours.dtype == theirs.dtype
    ids, values = rows_of(ours, 8 if mode == "distance" else 7)
    expected_ids, expected = rows_of(theirs, ids.shape[1])
    assert (ids[:, 0] == np.arange(700)).all()
    assert (np.diff(values, axis=1) >= 0).all()
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=2e-6)
    assert (np.sort(ids, 1) == np.sort(expected_ids, 1)).mean() > 0.999  # ties and rounding


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("search", ["exact", "graph"])
def test_new_vectors_get_fitted_neighbours(metric: str, search: str) -> None:
    x, new = clustered(3000, 9), clustered(400, 9, seed=5)
    new[100:] = new[0]  # each other's nearest, which are no neighbours here
    transformer = KNeighborsTransformer(n_neighbors=9, metric=metric, search=search).fit(x)
    matrix = transformer.transform(new)
    assert matrix.shape == (400, 3000)
    ids, values = rows_of(matrix, 10)
    assert all(len(set(row)) == 10 for row in ids)
    expected = NearestNeighbors(n_neighbors=10, metric=metric, algorithm="brute").fit(x).kneighbors(new)[0]
    recall = (values <= expected[:, -1:] * (1 + 1e-5) + 1e-6).mean()
    assert recall > (0.9999 if search == "exact" else 0.98)
    if search == "graph":
        assert transformer._searcher.measured >= 0.99


def test_hard_searches_end_exact() -> None:
    """Searches that find nothing lead to a comparison with all rows, ones that find too little to wider beams."""
    random = np.random.default_rng(0)
    x = random.normal(size=(8000, 64)).astype(np.float32)
    new = random.normal(size=(300, 64)).astype(np.float32)
    searcher = Searcher(x, "l2", method="graph", recall=1.0)
    searcher._walk = lambda queries, links, k: (np.full((len(queries), k), -1), np.full((len(queries), k), np.inf))
    ids, values = searcher.search(new, 10)
    assert searcher.measured == 0
    expected = NearestNeighbors(n_neighbors=10).fit(x).kneighbors(new)[0]
    np.testing.assert_allclose(np.sqrt(values), expected, rtol=1e-5)
    wide = Searcher(x, "l2", method="graph", recall=0.99)
    found = np.sqrt(wide.search(new, 10)[1])
    assert (found <= expected[:, -1:] * (1 + 1e-5)).mean() > 0.95 and wide.width > 64


@pytest.mark.parametrize("metric", ["l1", "cosine"])
def test_values_that_round_elsewhere_are_equal(metric: str) -> None:
    """A GPU's exact values beside those of the CPU's walk."""
    x, new = clustered(3000, 9), clustered(400, 9, seed=5)
    alike, other = (Searcher(x, metric, method="graph") for _ in range(2))
    other.graph = alike.graph = gnnd.build(x, 32, metric)  # a GPU gives others each time
    exact, nearer = other._exact, np.float32(1 + 1e-6 if metric == "cosine" else 1 - 1e-6)
    other._exact = lambda queries, k: (lambda ids, values: (ids, values * nearer))(*exact(queries, k))
    for searcher in (alike, other):
        searcher.search(new, 10)
    assert alike.measured == other.measured >= 0.99 and alike.width == other.width


def test_all_neighbours_count_in_the_recall() -> None:
    """Not the ten that a build counts unless it is told."""
    transformer = KNeighborsTransformer(n_neighbors=25)
    transformer.fit_transform(clustered(3000, 9))
    assert transformer.recall_ is not None and transformer.recall_.at == 25 and transformer.recall_.value >= 0.99


def test_links_are_made_where_they_pay() -> None:
    searcher = Searcher(np.empty((1_000_000, 1), np.float32), "l2")
    assert not searcher._pays(1000) and not searcher._pays(23_000) and searcher._pays(24_000)
    searcher.links = np.empty((0, 0))
    assert searcher._pays(1001) and not searcher._pays(1000)
    assert not Searcher(searcher.x[:150_000], "l2")._pays(10**9)
    assert not Searcher(searcher.x, "l2", recall=1)._pays(10**9)


def test_fitted_vectors_find_themselves() -> None:
    x = clustered(500, 6)
    transformer = KNeighborsTransformer(n_neighbors=4, recall=1)
    of_fit, again = transformer.fit_transform(x), transformer.transform(x)
    np.testing.assert_allclose(of_fit.toarray(), again.toarray(), rtol=1e-5, atol=1e-6)


def test_an_offset_costs_nothing() -> None:
    """float64 vectors around 1e8, which float32 would round to multiples of 8."""
    x = np.random.default_rng(0).normal(size=(600, 5))
    for metric in ("euclidean", "manhattan", "chebyshev"):
        transformer = KNeighborsTransformer(n_neighbors=5, metric=metric, recall=1)
        np.testing.assert_allclose(
            transformer.fit_transform(x + 1e8).data, clone(transformer).fit_transform(x).data, rtol=1e-5, atol=1e-6
        )
        assert (transformer.transform(x[:9] + 1e8).indices.reshape(9, 6)[:, 0] == np.arange(9)).all()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64, int, np.float32])
def test_whole_numbers_keep_their_digits(dtype) -> None:
    """Around 1e12, of which float32 has multiples of 65,536; the float32 ones are around 0."""
    offset = 0 if dtype is np.float32 else 10**12
    x = (np.random.default_rng(0).integers(0, 1000, size=(300, 3)) + offset).astype(dtype)
    given = x.tolist() if dtype is int else x
    transformer = KNeighborsTransformer(n_neighbors=4, recall=1)
    expected = SklearnsTransformer(n_neighbors=4).fit_transform(x.astype(np.float64) - offset)
    np.testing.assert_allclose(transformer.fit_transform(given).data, expected.data, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(transformer.transform(given).data, expected.data, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    "x, metric, message",
    [
        (np.arange(90).reshape(30, 3) + 2**60, "euclidean", "float64 has whole numbers up to 9007199254740992"),
        (np.arange(90).reshape(30, 3) + 1e12, "cosine", "float32, in which vectors are compared, moves them by"),
        (np.arange(90).reshape(30, 3) + 10**12, "cosine", "float32, in which vectors are compared, moves them by"),
        (np.arange(90).reshape(30, 3) * 1e-60, "euclidean", "float32, in which vectors are compared, moves them by"),
    ],
)
def test_digits_that_are_lost_are_told(x, metric: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KNeighborsTransformer(metric=metric).fit(x)


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int8, np.int64, np.float32])
def test_types_of_vectors(dtype) -> None:
    x = np.random.default_rng(0).integers(0, 100, size=(300, 6)).astype(dtype)
    transformer = KNeighborsTransformer(n_neighbors=5, recall=1)
    expected = SklearnsTransformer(n_neighbors=5).fit_transform(x.astype(np.float64))
    np.testing.assert_allclose(transformer.fit_transform(x).data, expected.data, rtol=1e-5)
    np.testing.assert_allclose(transformer.transform(x.astype(np.float64)).data, expected.data, rtol=1e-5)


def test_copies() -> None:
    """More copies of a vector than neighbours: each row still begins with itself, at distances of 0."""
    x = np.repeat(clustered(10, 4), 50, axis=0)
    for metric in METRICS:
        ids, values = rows_of(KNeighborsTransformer(n_neighbors=6, metric=metric).fit_transform(x), 7)
        assert (ids[:, 0] == np.arange(500)).all() and (ids // 50 == (np.arange(500) // 50)[:, None]).all()
        np.testing.assert_allclose(values, 0, atol=1e-6)
        assert (values >= 0).all()


def test_recall_is_told(digits) -> None:
    transformer = KNeighborsTransformer(n_neighbors=10, recall=0.95).fit(digits[0])
    assert transformer.recall_ is None
    transformer.fit_transform(digits[0])
    assert transformer.recall_ is not None and transformer.recall_.value >= 0.95
    assert transformer.effective_metric_ == "l2" and transformer.n_samples_fit_ == len(digits[0])
    assert transformer.get_feature_names_out()[-1] == "kneighborstransformer1796"


@pytest.mark.parametrize(
    "params, message",
    [
        ({"n_neighbors": 0}, "n_neighbors = 0"),
        ({"n_neighbors": 2000}, "n_neighbors = 2000"),
        ({"n_neighbors": 2.5}, "n_neighbors = 2.5"),
        ({"n_neighbors": 100}, "n_neighbors = 101, n_samples_fit = 100"),
        ({"mode": "both"}, "mode = 'both'"),
        ({"metric": "hamming"}, "'hamming' is not known"),
        ({"metric": len}, "is not known"),
        ({"metric": "minkowski", "p": 3}, "p = 3"),
        ({"n_jobs": 0}, "n_jobs = 0"),
        ({"search": "tree"}, "search = 'tree'"),
        ({"recall": 2.0}, "recall = 2, allowed are 0 to 1"),
        ({"recall": float("nan")}, "recall = nan, allowed are 0 to 1"),
        ({"metric": "minkowski", "p": [2]}, r"p = \[2\]"),
        ({"n_neighbors": True}, "n_neighbors = True"),
        ({"random_state": -1}, "random_state = -1, allowed are 0 and more"),
        ({"device": "tpu"}, "tpu"),
    ],
)
def test_wrong_parameters(params: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KNeighborsTransformer(**params).fit_transform(clustered(100, 3))


@pytest.mark.parametrize("params", [{"random_state": 1.7}, {"n_jobs": "2"}, {"n_jobs": 1.5}])
def test_parameters_of_another_kind(params: dict) -> None:
    (name,) = params
    with pytest.raises(TypeError, match=f"{name} must be an int, not {type(params[name]).__name__}"):
        KNeighborsTransformer(**params).fit_transform(clustered(100, 3))


def test_wrong_vectors() -> None:
    transformer = KNeighborsTransformer().fit(clustered(100, 3))
    with pytest.raises(ValueError, match="features"):
        transformer.transform(clustered(5, 4))
    with pytest.raises(ValueError, match="NaN"):
        transformer.transform(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="n_neighbors"):
        KNeighborsTransformer(n_neighbors=9).fit(clustered(5, 3)).transform(clustered(2, 3))
    with pytest.raises(ValueError, match="does not hold them"):
        KNeighborsTransformer().fit(np.eye(20, dtype=np.uint8)).transform(np.full((1, 20), 0.5))
    with pytest.raises(ValueError, match="0"):  # the zero vector's row
        KNeighborsTransformer(metric="cosine").fit_transform(np.zeros((10, 3)))


@pytest.mark.parametrize(
    "tool, neighbours",
    [
        (DBSCAN(eps=20, metric="precomputed"), {"n_neighbors": 30}),
        (
            SpectralClustering(10, affinity="precomputed_nearest_neighbors", n_neighbors=10, random_state=0),
            {"n_neighbors": 10, "mode": "connectivity"},
        ),
    ],
    ids=["DBSCAN", "SpectralClustering"],
)
def test_clusters_are_those_of_scikit_learns_neighbours(digits, tool, neighbours: dict) -> None:
    found, expected = (
        make_pipeline(transformer(**neighbours), clone(tool)).fit_predict(digits[0])
        for transformer in (KNeighborsTransformer, SklearnsTransformer)
    )
    assert adjusted_rand_score(found, expected) > 0.95
    assert adjusted_rand_score(digits[1], found) > 0.4


@pytest.mark.parametrize(
    "tool, neighbours",
    [
        (Isomap(metric="precomputed", n_neighbors=10), 10),
        (TSNE(metric="precomputed", init="random", perplexity=10, max_iter=300, random_state=0), 31),
    ],
    ids=["Isomap", "TSNE"],
)
def test_embeddings_are_as_good_as_of_scikit_learns_neighbours(digits, tool, neighbours: int) -> None:
    x = digits[0][:600]
    found, expected = (
        trustworthiness(x, make_pipeline(transformer(n_neighbors=neighbours), clone(tool)).fit_transform(x))
        for transformer in (KNeighborsTransformer, SklearnsTransformer)
    )
    assert found > expected - 0.02


def test_isomap_embeds_new_vectors(digits) -> None:
    x = digits[0]
    ours, theirs = (
        make_pipeline(transformer(n_neighbors=10), Isomap(metric="precomputed", n_neighbors=10)).fit(x[:900])
        for transformer in (KNeighborsTransformer, SklearnsTransformer)
    )
    assert (
        trustworthiness(x[900:], ours.transform(x[900:])) > trustworthiness(x[900:], theirs.transform(x[900:])) - 0.02
    )
