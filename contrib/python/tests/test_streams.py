# SPDX-License-Identifier: MIT
"""One stream is behind all arrays of a call. The arrays lie on the host and say that they lie on a GPU; the native
functions, which would find out, are replaced by ones that keep what they get."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest

import gnnd
from conftest import CudaArray, clustered
from gnnd import _arrays, _call, _graph, _native, _process

K = 4
# The results that the native functions would give for a graph of 6 objects.
OPERATIONS = {
    "symmetric_graph": (np.zeros(7, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)),
    "connected_components": (np.arange(6, dtype=np.int32), np.ones(6, np.int64)),
    "duplicates": (np.full(6, -1, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32), 0),
}


class OfDlpack:
    """A library's array with DLPack alone; keeps the streams that it was asked for."""

    def __init__(self, x, gpu=0):
        self._x, self._gpu, self.asked = x, gpu, []
        self.shape, self.dtype = x.shape, f"library.{x.dtype}"

    def __dlpack_device__(self):
        return 2, self._gpu

    def __dlpack__(self, *, stream):
        self.asked.append(stream)
        return self._x.__dlpack__()


class OfTorch(OfDlpack):
    """One whose library has a current stream."""


OfTorch.__module__ = "torch"


class OfGraph:
    """Stands in for gnnd.DeviceArray."""

    def __init__(self, gpu, shape, dtype, allocator=None, stream=0):
        self.gpu, self.shape, self.dtype, self.allocator, self.stream = gpu, shape, dtype, allocator, stream
        self.copied = []

    def __dlpack_device__(self):
        return 2, self.gpu

    def _view(self):
        return f"{self.dtype} on {self.stream}"

    def numpy(self, *, stream):
        self.copied.append(stream)
        return np.zeros(self.shape, np.int32 if self.dtype == "i32" else np.float32)


class Run(NamedTuple):
    out: list | None
    gpu: int
    stream: int
    allocator: object
    report: object


class Gpu:
    """Keeps the calls of native functions, in order."""

    def __init__(self):
        self.events: list = []

    def native(self, name, result):
        def call(*arguments):
            self.arguments = arguments
            self.events.append((name, *[one for one in arguments if isinstance(one, Run)]))
            return result

        call.__name__ = name
        return call

    @property
    def run(self) -> Run:
        return self.events[-1][1]


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    host = (np.zeros((6, K), np.int32), np.zeros((6, K), np.float32))
    for name in ("build", "merge", "append", "refine"):
        monkeypatch.setattr(_native, name, made.native(name, (host, {"device": "cuda:0"}, None)))
    monkeypatch.setattr(_native, "exact_rows", made.native("exact_rows", host))
    for name in ("symmetric_graph", "connected_components", "duplicates"):
        monkeypatch.setattr(_native, name, made.native(name, OPERATIONS[name]))
    report = dict.fromkeys(("recall", "recall_low", "recall_high", "recall_at", "recall_objects"), 1)
    monkeypatch.setattr(_native, "measure", made.native("measure", report))
    monkeypatch.setattr(_native, "synchronize", lambda *arguments: made.events.append(("synchronize", *arguments)))
    monkeypatch.setattr(_native, "device_of", lambda pointer: 0)
    monkeypatch.setattr(_native, "device_count", lambda: (0, "there is none"))
    monkeypatch.setattr(_native, "Run", Run)
    monkeypatch.setattr(_process, "_cuda_process", None)
    for module in (_call, _graph):
        monkeypatch.setattr(module, "DeviceArray", OfGraph)

    class Torch:
        class cuda:  # noqa: N801
            @staticmethod
            def current_stream(device):
                return type("Stream", (), {"cuda_stream": 4000 + device})

    monkeypatch.setitem(sys.modules, "torch", Torch)
    return made


@pytest.fixture
def x():
    return clustered(6, 3)


def of_host():
    return gnnd.Graph(np.zeros((6, K), np.int32), np.zeros((6, K), np.float32))


def of_gpu(gpu=0):
    return gnnd.Graph(OfGraph(gpu, (6, K), "i32"), OfGraph(gpu, (6, K), "f32"))


@pytest.mark.parametrize("first, second", [(OfTorch, OfDlpack), (OfDlpack, OfTorch), (OfTorch, OfTorch)])
@pytest.mark.parametrize("stream", [None, 0, 2, 77])
@pytest.mark.parametrize("name", ["merge", "append"])
def test_two_bases_are_in_order_with_one_stream(gpu, x, first, second, stream, name):
    one, other = first(x), second(x)
    current = 4000 if first is OfTorch else 1
    expected = {None: current, 0: 1}.get(stream, stream)
    if name == "merge":
        graph = gnnd.merge(one, of_gpu(), other, of_host(), stream=stream)
    else:
        graph = gnnd.append(one, of_gpu(), other, stream=stream)
    assert one.asked == other.asked == [expected]
    assert (gpu.run.gpu, gpu.run.stream) == (0, expected)
    assert gpu.run.out == [f"i32 on {expected}", f"f32 on {expected}"]
    assert graph.ids.shape == (12, K) and graph.ids.stream == graph.distances.stream == expected


def test_a_base_on_the_host_beside_one_on_a_gpu(gpu, x):
    other = OfTorch(x, gpu=2)
    gnnd.merge(x, of_host(), other, of_host())
    assert other.asked == [4002] and (gpu.run.gpu, gpu.run.stream) == (2, 4002)
    assert gpu.run.out == ["i32 on 4002", "f32 on 4002"]


@pytest.mark.parametrize("stream, expected", [(None, 1), (77, 77)])
def test_a_graph_on_a_gpu_of_vectors_on_the_host(gpu, x, stream, expected):
    gnnd.merge(x, of_gpu(3), x, of_host(), stream=stream)
    assert (gpu.run.gpu, gpu.run.stream) == (3, expected)


def test_vectors_on_the_host_have_no_stream(gpu, x):
    gnnd.build(x, K, stream=77)
    assert gpu.run == (None, -1, 0, None, None)


def test_a_graph_is_copied_to_the_host_in_order(gpu, x):
    graph = of_gpu()
    gnnd.refine(OfTorch(x), graph)
    assert graph.ids.copied == graph.distances.copied == [4000]
    assert gpu.run.stream == 4000 and gpu.run.out is None
    gnnd.eval(graph, OfDlpack(x), stream=77)
    assert graph.ids.copied == [4000, 77]
    graph.on_host()
    assert graph.distances.copied == [4000, 77, 1]


@pytest.mark.parametrize("name", ["eval", "exact_neighbors"])
def test_what_runs_on_its_own_stream_waits_for_the_caller_s(gpu, x, name):
    given = OfTorch(x, gpu=1)
    native = "measure" if name == "eval" else "exact_rows"
    for stream, expected in ((None, 4001), (77, 77)):
        gpu.events.clear()
        if name == "eval":
            gnnd.eval(of_host(), given, stream=stream)
        else:
            gnnd.exact_neighbors(given, [1], K, stream=stream)
        assert given.asked[-1] == expected and gpu.events == [("synchronize", 1, expected), (native,)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_run_where_the_graph_lies_or_they_are_told(gpu, name):
    operation = getattr(gnnd.graph, name)
    for graph, device, expected, place in (
        (of_host(), "auto", "cpu", (-1, 0)),
        (of_host(), "cpu", "cpu", (-1, 0)),
        (of_host(), "cuda:1", "cuda:1", (-1, 0)),
        (of_gpu(2), "auto", "cuda:2", (2, 77)),
        (of_gpu(2), "cuda", "cuda:2", (2, 77)),
        (of_gpu(2), "cuda:1", "cuda:1", (2, 77)),  # which the native function refuses
        (of_gpu(2), "cpu", "cpu", (-1, 0)),
    ):
        operation(graph, device=device, stream=77)
        parts, said = gpu.arguments[0], gpu.arguments[-2]
        assert (said, gpu.run.gpu, gpu.run.stream) == (expected, *place)
        on_gpu = isinstance(graph.ids, OfGraph)
        assert (parts[0] == "i32 on 0") == (on_gpu and expected != "cpu")
        assert not on_gpu or graph.ids.copied == ([77] if expected == "cpu" else [])
    operation(of_gpu())
    assert gpu.run == (None, 0, 1, None, None)  # the legacy default stream


@pytest.mark.parametrize("producer, waits", [(None, []), (77, []), (5, [5]), (1, [1]), (2, [2])])
def test_the_producer_s_stream_is_waited_for(gpu, x, producer, waits):
    """A call waits for a stream that is not its own, as the CUDA array interface asks of consumers."""
    gnnd.merge(CudaArray(x, stream=producer), of_host(), OfDlpack(x), of_host(), stream=77)
    assert [event[0] for event in gpu.events] == ["synchronize"] * len(waits) + ["merge"]
    assert [event[2] for event in gpu.events[:-1]] == waits
    assert gpu.run.stream == 77


@pytest.mark.parametrize("producer", [0, -1, "legacy"])
def test_streams_that_the_interface_does_not_know(gpu, x, producer):
    with pytest.raises(ValueError, match="x: the CUDA array interface knows no stream"):
        gnnd.build(CudaArray(x, stream=producer), K)
    assert gpu.events == []


def test_arrays_of_two_gpus(gpu, x):
    for call, text in (
        (lambda: gnnd.merge(OfDlpack(x), of_host(), OfDlpack(x, 1), of_host()), "x2 lies on cuda:1 and x1 on cuda:0"),
        (lambda: gnnd.append(x, of_gpu(1), OfDlpack(x)), "graph.ids lies on cuda:1 and added on cuda:0"),
        (lambda: gnnd.refine(OfTorch(x, 2), of_gpu()), "graph.ids lies on cuda:0 and x on cuda:2"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert gpu.events == []


def test_allocators_work_on_the_call_s_stream(gpu, x):
    class Allocator:
        allocate = deallocate = free = staticmethod(lambda *_: 0)

    allocator = Allocator()
    graph = gnnd.build(OfTorch(x), K, allocator=allocator)
    assert graph.ids.allocator is allocator and graph.ids.stream == gpu.run.stream == 4000
    gnnd.build(x, K, allocator=allocator)
    assert (gpu.run.gpu, gpu.run.stream) == (-1, 1)  # of the legacy default stream, which they know
    gnnd.graph.symmetric_graph(of_gpu(), allocator=allocator)
    assert gpu.run.allocator is allocator and (gpu.run.gpu, gpu.run.stream) == (0, 1)


def test_cupy_tells_the_stream_of_the_array_s_gpu(monkeypatch, x):
    class Array(OfDlpack):
        pass

    Array.__module__ = "cupy"

    class Cupy:
        class cuda:  # noqa: N801
            @staticmethod
            def get_current_stream(device):
                return type("Stream", (), {"ptr": 500 + device})

    monkeypatch.setitem(sys.modules, "cupy", Cupy)
    assert _arrays.place_of(None, x=Array(x, 3)) == (3, 503)
