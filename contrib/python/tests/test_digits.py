# SPDX-License-Identifier: MIT
"""Vectors of other types than are compared, whose digits float32 may lack."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gnnd
from conftest import clustered


def lost(x, **params):
    with pytest.raises(ValueError, match=r"x is of float64, .* Subtract their mean"):
        gnnd.build(x, k=3, device="cpu", **params)


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_digits_that_float32_lacks_are_told(dtype):
    x = np.random.default_rng(0).normal(size=(3000, 4)).astype(dtype)
    lost(x + 1e12)
    lost(x + 1e6, metric="cosine")
    lost(x * 1e-60)
    lost([[10**12 + i] for i in range(9)])
    far = x + 1e12
    far[:20] = -1e30  # some that lie elsewhere change nothing
    lost(far)
    for fine in (x + 1e4, x * 1e-20, x * 1e15, np.full((9, 3), 0.1), np.where(x > 0, 1e12, x)):
        assert gnnd.build(fine, k=3, device="cpu").n == len(fine)
    ids = gnnd.build_exact(x + 1e12 - 1e12, k=3).ids
    moved = (x + 1e12) - (x + 1e12).mean(0)
    assert (np.sort(gnnd.build_exact(moved, k=3).ids) == np.sort(ids)).mean() > 0.99


@pytest.mark.parametrize("change", [np.ascontiguousarray, np.asfortranarray])
def test_digits_of_files_are_told(tmp_path, change):
    x = np.random.default_rng(0).normal(size=(5000, 4))
    np.save(tmp_path / "lost.npy", change(x + 1e12))
    np.save(tmp_path / "fine.npy", change(x))
    for call in (gnnd.read_vectors, lambda path: gnnd.build_sharded(path, tmp_path / "graph", k=3, shards=2)):
        with pytest.raises(ValueError, match=r"lost.npy is of float64, .* Subtract their mean"):
            call(tmp_path / "lost.npy")
        assert not (tmp_path / "graph").exists()
    np.testing.assert_array_equal(gnnd.read_vectors(tmp_path / "fine.npy"), x.astype(np.float32))
    assert gnnd.build_sharded(tmp_path / "fine.npy", tmp_path / "graph", k=3, shards=2, device="cpu").n == 5000


@pytest.mark.parametrize("size", [0, 60, 128, 2000])
def test_files_that_are_cut_off_are_told_by_who_reads_them(tmp_path, size):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(5000, 4)))
    with open(path, "r+b") as file:
        file.truncate(size)
    with pytest.raises(OSError, match="x.npy"):
        gnnd.read_vectors(path)


def test_whole_numbers_in_lists():
    assert gnnd.build([[0, 1], [2, 3], [5, 5]], k=1).ids.tolist() == [[1], [0], [1]]
    with pytest.raises(ValueError, match="x holds .* float64 has whole numbers up to 9007199254740992"):
        gnnd.build([[2**60 + i] for i in range(9)], k=3)


@pytest.mark.parametrize("tool", ["umap", "hdbscan"])
def test_tools_take_the_same_vectors(tool):
    if tool == "umap":
        pytest.importorskip("pynndescent")
        call = gnnd.umap.precomputed_knn
    else:
        call = gnnd.hdbscan.mutual_reachability
    x = clustered(80, 3)
    for make, error, text in (
        (lambda: x + np.float64(1e12), ValueError, "Subtract their mean"),
        (lambda: (x * 9).astype(np.int64) + 2**60, ValueError, "float64 has whole numbers up to"),
        (lambda: np.ma.masked_array(x), TypeError, "masked"),
        (lambda: x * 1j, TypeError, "complex"),
        (lambda: x.astype(str), TypeError, "vectors are numbers"),
        (lambda: x[0], ValueError, "1 dimensions"),
    ):
        with pytest.raises(error, match=text):
            call(make(), 5)
    call((x * 9).astype(np.int64), 5)


def degrees_of_a_city() -> np.ndarray:
    """20,000 places within a kilometre, of which float32 knows only every forty centimetres."""
    places = np.random.default_rng(1).uniform(size=(20_000, 2))
    return np.array([52.52, 13.405]) + places * np.array([0.009, 0.0148])


@pytest.mark.parametrize("metric", ["l2", "l1", "linf"])
def test_neighbours_that_lie_as_far_as_float32_moves_them_are_warned_of(metric):
    x = degrees_of_a_city()
    with pytest.warns(
        RuntimeWarning, match="moves those of x by .* have their neighbour 10 within 256 times"
    ) as warned:
        gnnd.build(x, k=12, metric=metric)
    assert warned[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="have their neighbour 3 "):
        gnnd.build_exact(x[:2000] - [52, 13] + 200, k=3, metric=metric)


def test_neighbours_that_float32_tells_apart_are_not(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gnnd.build(degrees_of_a_city() - [52.52, 13.405], k=12)
        gnnd.build(x.astype(np.float64), k=12)  # as float32 has them
        gnnd.build(degrees_of_a_city(), k=12, metric="ip")
        gnnd.build(np.repeat(degrees_of_a_city()[:200], 20, axis=0), k=12)  # copies are nearest whatever rounds


def test_what_is_added_is_looked_at_too():
    x = degrees_of_a_city()
    near = (x[:100] - [52.52, 13.405]).astype(np.float32)
    graph = gnnd.build(near, k=10)
    with pytest.warns(RuntimeWarning, match="moves those of added by .* against each other"):
        gnnd.append(near, graph, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gnnd.append(near, graph, near[::-1].astype(np.float64) + 1)
