# SPDX-License-Identifier: MIT
"""The real hdbscan, on scikit-learn's digits: its clusters beside those of gnnd's sparse mutual reachability."""

from __future__ import annotations

import time

import pytest

hdbscan = pytest.importorskip("hdbscan")
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

import gnnd.hdbscan  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("min_samples", [5, 15])
def test_clusters_are_its_own(min_samples: int) -> None:
    x, classes = load_digits(return_X_y=True)
    begin = time.perf_counter()
    own = hdbscan.HDBSCAN(min_cluster_size=15, min_samples=min_samples).fit_predict(x)
    middle = time.perf_counter()
    distances = gnnd.hdbscan.mutual_reachability(x, min_samples)
    ours = hdbscan.HDBSCAN(metric="precomputed", min_samples=1, min_cluster_size=15).fit_predict(distances)
    end = time.perf_counter()
    scores = [adjusted_rand_score(classes, one) for one in (own, ours)]
    between = adjusted_rand_score(own, ours)
    print(
        f"\n{min_samples} samples: adjusted Rand index, own and ours {scores}, between both {between:.4f}; "
        f"{middle - begin:.2f} s, {end - middle:.2f} s"
    )
    assert between > 0.9
