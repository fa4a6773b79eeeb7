# SPDX-License-Identifier: MIT
"""Processes that are forked: on the CPU they build, and where CUDA was used before they are told so."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest

import gnnd
from conftest import clustered
from gnnd import _arrays, _process

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_a_child(work, *arguments):
    """Returns the result of a function that runs in a forked process."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(work(*arguments)))
    child.start()
    found = queue.get(timeout=600)
    child.join(600)
    assert child.exitcode == 0
    return found


def build_on_the_cpu(x):
    return gnnd.build(x, k=5, seed=1, device="cpu").ids


def test_a_forked_child_can_build(x):
    expected = build_on_the_cpu(x)  # starts OpenMP's threads, which do not survive a fork
    np.testing.assert_array_equal(in_a_child(build_on_the_cpu, x), expected)


class OfGpu:
    """An array whose protocol says that it lies on a GPU; nobody may ask it for more."""

    def __init__(self, protocol):
        self.shape, self.dtype = (40, 4), "library.float32"
        if protocol == "dlpack":
            self.__dlpack_device__ = lambda: (2, 0)
        else:
            self.__cuda_array_interface__ = {
                "shape": self.shape,
                "typestr": "<f4",
                "data": (1 << 40, False),
                "version": 3,
            }


def uses_of_a_gpu(x, graph, path):
    """All that may touch one."""
    from gnnd._search import Searcher

    return {
        "build": lambda: gnnd.build(x, k=5),
        "build on cuda": lambda: gnnd.build(x, k=5, device="cuda"),
        "build_exact": lambda: gnnd.build_exact(x, k=5),
        "refine": lambda: gnnd.refine(x, graph),
        "merge": lambda: gnnd.merge(x, graph, x, graph),
        "append": lambda: gnnd.append(x, graph, x),
        "eval": lambda: gnnd.eval(graph, x),
        "exact_neighbors": lambda: gnnd.exact_neighbors(x, [1]),
        "duplicates": lambda: gnnd.duplicates(x, 0.1),
        "plan": lambda: gnnd.plan(1000, 10),
        "build_sharded": lambda: gnnd.build_sharded(path, path + ".graph", device="cuda"),
        "devices of build_sharded": lambda: gnnd.build_sharded(path, path + ".graph", device="cpu", devices=["cuda:0"]),
        "search_links": lambda: gnnd.graph.search_links(x, graph, device="auto"),
        "a search": lambda: Searcher(x, "l2").search(x, 3),
        "an array": lambda: gnnd.DeviceArray(0, (3, 3), "f32"),
        "DLPack": lambda: _arrays.vectors(OfGpu("dlpack")),
        "the CUDA array interface": lambda: _arrays.vectors(OfGpu("cuda")),
        "a place": lambda: _arrays.place_of(None, x=OfGpu("cuda")),
    }


def test_a_child_is_told_that_cuda_was_used_before(x, monkeypatch, tmp_path):
    """Each by a RuntimeError, and the CPU goes on to serve it."""
    graph, path = gnnd.build(x, k=5, device="cpu"), str(tmp_path / "x.npy")
    np.save(path, x)
    monkeypatch.setattr(_process, "_cuda_process", os.getpid())  # as though it had been

    def ask():
        said = {}
        for name, use in uses_of_a_gpu(x, graph, path).items():
            try:
                use()
            except RuntimeError as error:
                said[name] = str(error)
        return said, gnnd.build(x, k=5, device="cpu").n, gnnd.eval(graph, x, device="cpu").value

    said, n, recall = in_a_child(ask)
    assert list(said) == list(uses_of_a_gpu(x, graph, path))
    text = f"CUDA was used by process {os.getpid()} before this process was forked; use device='cpu' here"
    assert all(text in one for one in said.values()), said
    assert (n, recall >= 0.98) == (1200, True)
    _process.use_cuda()  # here it may go on
    assert _process._cuda_process == os.getpid()


def test_whoever_comes_first_has_used_cuda(monkeypatch):
    """With a GPU there; without one nobody has."""
    monkeypatch.setattr(_process, "_cuda_process", None)
    for count in (0, 1):
        monkeypatch.setattr(gnnd._native, "device_count", lambda count=count: (count, ""))
        assert _process.named("cpu") == "cpu" and _process._cuda_process is None
        assert _process.named("cuda:0") == "cuda:0"
        assert _process._cuda_process == (os.getpid() if count else None)


def test_many_children_build_at_once(x):
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        found = pool.map(build_on_the_cpu, [clustered(300, 6, seed) for seed in range(6)])
    assert [ids.shape for ids in found] == [(300, 5)] * 6
