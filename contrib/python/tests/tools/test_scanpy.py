# SPDX-License-Identifier: MIT
"""The real scanpy, on scikit-learn's digits: its neighbours beside those with gnnd's transformer."""

from __future__ import annotations

import time

import numpy as np
import pytest

scanpy = pytest.importorskip("scanpy")
from sklearn.datasets import load_digits  # noqa: E402

from gnnd.sklearn import KNeighborsTransformer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("n_neighbors", [15, 30])
def test_neighbours_are_its_own(n_neighbors: int) -> None:
    x = load_digits(return_X_y=True)[0].astype(np.float32)
    own, ours = scanpy.AnnData(x), scanpy.AnnData(x)
    scanpy.pp.neighbors(own, n_neighbors=n_neighbors, use_rep="X")  # compiled from here on
    begin = time.perf_counter()
    scanpy.pp.neighbors(own, n_neighbors=n_neighbors, use_rep="X")
    middle = time.perf_counter()
    transformer = KNeighborsTransformer(n_neighbors=n_neighbors)
    scanpy.pp.neighbors(ours, n_neighbors=n_neighbors, use_rep="X", transformer=transformer)
    end = time.perf_counter()
    assert transformer.recall_ is not None and transformer.recall_.value >= 0.99
    expected, found = own.obsp["connectivities"] > 0, ours.obsp["connectivities"] > 0
    shared = expected.multiply(found).nnz / max(expected.nnz, found.nnz)
    difference = abs(own.obsp["connectivities"] - ours.obsp["connectivities"]).max()
    print(
        f"\n{n_neighbors} neighbours: {shared:.4f} of the pairs are the same, weights differ by at most "
        f"{difference:.4f}; {middle - begin:.3f} s, {end - middle:.3f} s"
    )
    assert shared > 0.98
