# SPDX-License-Identifier: MIT
"""The real umap-learn, on scikit-learn's digits: its result beside the one with its own neighbours."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

umap = pytest.importorskip("umap")
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.manifold import trustworthiness  # noqa: E402

import gnnd  # noqa: E402
import gnnd.graph  # noqa: E402
import gnnd.umap  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return load_digits(return_X_y=True)[0].astype(np.float32)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_as_good_as_with_its_own_neighbours(digits: np.ndarray, metric: str, record_property) -> None:
    fitted, new = digits[:1500], digits[1500:]
    options = {"n_neighbors": 15, "random_state": 0, "metric": metric, "force_approximation_algorithm": True}
    umap.UMAP(**options, n_epochs=2).fit(fitted)  # compiled from here on
    begin = time.perf_counter()
    own = umap.UMAP(**options).fit(fitted)
    middle = time.perf_counter()
    knn = gnnd.umap.precomputed_knn(fitted, 15, metric)
    ours = umap.UMAP(**options, precomputed_knn=knn).fit(fitted)
    end = time.perf_counter()
    found = [trustworthiness(fitted, one.embedding_, metric=metric) for one in (own, ours)]
    of_new = [trustworthiness(new, one.transform(new), metric=metric) for one in (own, ours)]
    print(f"\n{metric}: trustworthiness, own and ours {found}, of new rows {of_new}")
    print(f"{middle - begin:.2f} s, {end - middle:.2f} s")
    assert found[1] > found[0] - 0.01 and of_new[1] > of_new[0] - 0.02
    again = pickle.loads(pickle.dumps(ours))
    assert again.transform(new[:5]).shape == (5, 2)


def test_fuzzy_weights_are_its_own(digits: np.ndarray) -> None:
    knn = gnnd.umap.precomputed_knn(digits, 15, recall=1)
    theirs = umap.UMAP(n_neighbors=15, n_epochs=2, random_state=0, precomputed_knn=knn).fit(digits).graph_
    ours = gnnd.graph.fuzzy_simplicial_set(gnnd.build_exact(digits, 14))
    ours.data[ours.data < ours.data.max() / 500] = 0  # as UMAP.fit() does before it embeds
    assert abs(theirs - ours).max() < 1e-4


@pytest.mark.parametrize("search", ["exact", "graph"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16])
def test_new_vectors_are_compared_as_they_are(dtype: type, search: str) -> None:
    """umap-learn hands over float32: fractions were cut off, and what lies beyond the fitted type wrapped around."""
    random = np.random.default_rng(0)
    x = random.integers(0, 128, (500, 8)).astype(dtype)
    new = random.uniform(-100, 300, (20, 8)).astype(np.float32)
    whole = x[:20].astype(np.float32)
    given, wide = (gnnd.umap.precomputed_knn(rows, 10, search=search)[2] for rows in (x, x.astype(np.float32)))
    for queries in (new, whole, new):
        np.testing.assert_allclose(given.query(queries, 3)[1], wide.query(queries, 3)[1], rtol=1e-6)
    assert given._raw_data.dtype == dtype
    with pytest.raises(ValueError, match="NaN"):
        given.query(np.full((1, 8), np.nan, np.float32), 3)
