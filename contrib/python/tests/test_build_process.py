# SPDX-License-Identifier: MIT
"""A build's effects on its process: progress, interruption, other threads, and memory."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gnnd
from conftest import check_graph, clustered
from gnnd import _native
from gnnd.distributed._base import Rows
from gnnd.distributed._records import parts


def test_progress_is_called_and_its_errors_end_the_build(x):
    records = []
    graph = gnnd.build(x, k=20, recall=0, progress=records.append)
    assert [record["iteration"] for record in records] == list(range(len(records)))
    assert records == graph.stats["iterations"] and len(records) > 1

    def fails(record):
        raise LookupError("enough")

    def fails_last(record):
        if record["iteration"] == 1:
            raise LookupError("enough")

    for progress in (fails, fails_last):
        with pytest.raises(LookupError, match="enough"):
            gnnd.build(x, k=20, recall=0, iterations=1, progress=progress)


def test_progress_for_people(x, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # as if it were not installed
    gnnd.build(x, k=20, recall=0, progress=True)
    assert "gnnd.build: iteration 0" in capsys.readouterr().err


def test_progress_as_a_bar(x, capsys):
    pytest.importorskip("tqdm")
    gnnd.build(x, k=20, recall=0, progress=True)
    assert "gnnd.build: " in capsys.readouterr().err


def test_ctrl_c_ends_a_build(request):
    # In the background of a script SIGINT is ignored, and Python leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    # Minutes of a processor's work, so that it is not done before the interrupt.
    x = np.random.default_rng(0).random((600_000, 48), np.float32)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def build_interrupted():
        timer.start()
        gnnd.build_exact(x, k=10, device="cpu")

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        build_interrupted()
    assert time.monotonic() - start < 60
    assert gnnd.build(x[:500], k=5).n == 500  # and the next one works


def test_other_threads_run_meanwhile():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    gained = 0
    for n in (20_000, 80_000, 320_000):  # however fast the machine is
        x = clustered(n, 16)
        before = counted[0]
        gnnd.build(x, k=10, device="cpu")
        gained = counted[0] - before
        if gained > 5:
            break
    stop.set()
    thread.join()
    assert gained > 5


@pytest.mark.parametrize("progress", [None, "lambda record: None"])
def test_python_ends_while_a_thread_builds(progress):
    script = f"""
import threading, time
import numpy as np
import gnnd

x = np.random.default_rng(0).random((600_000, 48), np.float32)
build = lambda: gnnd.build(x, k=10, device="cpu", progress={progress})
threading.Thread(target=build, daemon=True).start()
time.sleep(0.5)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


ON_A_GPU = pytest.param("cuda", marks=pytest.mark.skipif(_native.device_count()[0] == 0, reason="no GPU"))


@pytest.mark.parametrize("device", ["cpu", ON_A_GPU])
def test_threads_at_once(x, device):
    graphs: list = [None] * 4

    def build(i):
        # Iterations that are given are made, however few the vectors.
        graphs[i] = gnnd.build(x, k=10, seed=5, device=device, recall=0, iterations=4, deterministic=True)

    threads = [threading.Thread(target=build, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for graph in graphs:
        check_graph(graph, x, "l2")
        np.testing.assert_array_equal(graph.ids, graphs[0].ids)


def test_a_thousand_builds_leak_nothing():
    x = clustered(100, 8)

    def builds(count):
        for _ in range(count):
            gnnd.build(x, k=32, threads=1)
            with pytest.raises(ValueError):
                gnnd.build(x, k=32, recall=2)

    builds(200)
    before = _own_memory()
    builds(1000)
    assert _own_memory() - before < 8 << 20  # the graphs alone would be 26 MB


def _own_memory() -> int:
    """Bytes that this process has written, in memory or swapped; not those of files, which come and go."""
    status = Path("/proc/self/status").read_text()
    return sum(int(kib) << 10 for kib in re.findall(r"^(?:RssAnon|VmSwap):\s*(\d+) kB$", status, re.M))


def test_memory_of_graphs_is_used_again():
    x = clustered(20_000, 4)
    one = {"k": 16, "recall": 0, "iterations": 1, "device": "cpu"}  # a GPU's graphs differ from build to build
    try:
        gnnd.keep_host_memory(0)
        assert _native.kept_host_memory() == 0
        gnnd.keep_host_memory(8 << 20)
        graph = gnnd.build(x, **one)  # 1.28 MB each of ids and distances
        first = {graph.ids.ctypes.data, graph.distances.ctypes.data}
        held = graph.ids
        kept = held.copy()
        del graph
        gc.collect()
        assert _native.kept_host_memory() == held.nbytes  # the distances'
        second = gnnd.build(x, **one)
        assert len({second.ids.ctypes.data, second.distances.ctypes.data} & first - {held.ctypes.data}) == 1
        np.testing.assert_array_equal(held, kept)
        np.testing.assert_array_equal(second.ids, kept)
        assert _native.kept_host_memory() == 0
        many = [gnnd.build(x, **one) for _ in range(5)]
        del many, second
        gc.collect()
        assert 0 < _native.kept_host_memory() <= 8 << 20
        gnnd.keep_host_memory(0)
        assert _native.kept_host_memory() == 0
    finally:
        gnnd.keep_host_memory(256 << 20)


def test_work_memory_of_merges_is_used_again():
    x = clustered(40_000, 4)
    halves = [Rows(x[:20_000], "f32"), Rows(x[20_000:], "f32")]
    one = {"k": 16, "recall": 0, "iterations": 1, "device": "cpu"}
    graphs = [gnnd.build(half.array, **one) for half in halves]
    first, second = (parts((graph.ids, graph.distances), "l2") for graph in graphs)

    def merge() -> list[np.ndarray]:
        found, _ = _native.merge_across(halves[0].native, first, halves[1].native, second, one)
        return list(found)

    try:
        gnnd.keep_host_memory(0)
        before = merge()
        assert _native.kept_host_memory() == 0
        gnnd.keep_host_memory(256 << 20)
        again = [merge()]
        kept = _native.kept_host_memory()
        assert kept > 40_000 * 16 * 8  # more than the lists alone; what was found is not given back yet
        again += [merge() for _ in range(3)]
        assert _native.kept_host_memory() <= kept
        for one_found in again:
            np.testing.assert_array_equal(one_found, before)
    finally:
        gnnd.keep_host_memory(256 << 20)


def test_allocators_are_checked(x):
    with pytest.raises(ValueError, match="unknown allocator 'heap'; known are torch, cupy, rmm"):
        gnnd.build(x, allocator="heap")
    with pytest.raises(TypeError, match="dict has no allocate, deallocate, free"):
        gnnd.build(x, allocator={})
