# SPDX-License-Identifier: MIT
"""Arrays of all kinds in, without a copy where none is needed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gnnd
from conftest import CudaArray, clustered
from gnnd import _arrays, _native

ml_dtypes = pytest.importorskip("ml_dtypes")


def same_graph(x, like) -> None:
    """x gives the graph that its plain form gives."""
    expected = gnnd.build(np.ascontiguousarray(like), k=5, device="cpu")
    np.testing.assert_array_equal(gnnd.build(x, k=5, device="cpu").ids, expected.ids)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int8", ml_dtypes.bfloat16])
def test_every_dtype_is_used_where_it_lies(dtype):
    x = np.random.default_rng(0).integers(0, 100, size=(60, 7)).astype(dtype)
    given = _arrays.vectors(x)
    assert given.native.pointer == x.ctypes.data and (given.n, given.d, given.device) == (60, 7, -1)
    same_graph(x, x)


def test_rows_that_lie_apart_are_not_copied(x):
    view = x[::3, 2:9]
    given = _arrays.vectors(view)
    assert given.native.pointer == view.ctypes.data and given.native.stride == view.strides[0]
    same_graph(view, view)


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda x: x[:, ::2],
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.astype(">f4"),
        lambda x: x.astype(">f8"),
        lambda x: x.astype(">f2"),
        lambda x: x.astype(np.float64),
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: x.tolist(),
    ],
)
def test_others_are_converted(x, change):
    changed = change(x[:80])
    same_graph(changed, np.asarray(changed, dtype=np.float32))


def test_windows_that_overlap_are_copied():
    walk = np.random.default_rng(2).normal(size=400).cumsum().astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(walk, 16)
    same_graph(windows, windows)


def test_unaligned_and_read_only():
    x = clustered(50, 6)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(x.tobytes(), np.uint8)
    same_graph(raw[1:].view(np.float32).reshape(x.shape), x)
    x.flags.writeable = False
    same_graph(x, x)


def test_memory_mapped(tmp_path):
    x = clustered(300, 8)
    np.save(tmp_path / "x.npy", x)
    same_graph(np.load(tmp_path / "x.npy", mmap_mode="r"), x)


class Producer:
    """A library's array with DLPack alone."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device, self.streams = array, device, []
        self.shape, self.dtype = array.shape, f"library.{array.dtype}"

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **arguments):
        self.streams.append(arguments.get("stream"))
        return self.array.__dlpack__()


def test_dlpack_of_host_memory(x):
    producer = Producer(x)
    assert _arrays.vectors(producer).native.pointer == x.ctypes.data
    same_graph(producer, x)
    same_graph(Producer(x.astype(np.float64)), x)
    same_graph(Producer(np.asfortranarray(x[:50])), x[:50])
    assert set(producer.streams) == {None}


def test_the_producer_lives_as_long_as_its_vectors(x):
    producer = Producer(x.copy())
    given = _arrays.vectors(producer)
    alive = weakref.ref(producer)
    del producer
    assert alive() is not None and given.n == 1200


def test_a_view_keeps_what_it_shows():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    alive = weakref.ref(array)
    view = _native.Array(array, array.ctypes.data, 3, 4, 16, "i32")
    del array
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("given, number", [(None, 1), (0, 1), (1, 1), (2, 2), (0x7F00, 0x7F00)])
def test_dlpack_gets_the_stream(x, given, number):
    producer = Producer(x, device=(2, 0))
    _arrays.vectors(producer, stream=given)
    assert producer.streams == [number]


def test_streams_of_libraries(x):
    class Torch:
        cuda_stream = 0

    class Cupy:
        ptr = 77

    class Cuda:
        def __cuda_stream__(self):
            return 0, 99

    for stream, number in ((Torch(), 1), (Cupy(), 77), (Cuda(), 99)):
        assert _arrays.stream_of(stream, x, 0) == number
    with pytest.raises(ValueError, match="stream = -1"):
        _arrays.stream_of(-1, x, 0)
    with pytest.raises(TypeError, match="not str"):
        _arrays.stream_of("torch", x, 0)


def test_the_current_stream_of_torch_is_taken(x, monkeypatch):
    class Tensor(Producer):
        pass

    Tensor.__module__ = "torch"

    class Current:
        cuda_stream = 4242

    class Module:
        class cuda:  # noqa: N801
            @staticmethod
            def current_stream(device):
                assert device == 3
                return Current()

    monkeypatch.setitem(__import__("sys").modules, "torch", Module)
    tensor = Tensor(x, device=(2, 3))
    _arrays.vectors(tensor)
    assert tensor.streams == [4242]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda x: x[0], ValueError, "1 dimensions"),
        (lambda x: x[None], ValueError, "3 dimensions"),
        (lambda x: x[:0], ValueError, "0 vectors"),
        (lambda x: x[:1], ValueError, "1 vectors"),
        (lambda x: x[:, :0], ValueError, "dimension 0"),
        (lambda x: x.astype(np.int64), TypeError, "int64"),
        (lambda x: x.astype(">i8"), TypeError, ">i8"),
        (lambda x: x.astype(np.complex64), TypeError, "complex64"),
        (lambda x: x > 0, TypeError, "bool"),
        (lambda x: np.ma.masked_array(x), TypeError, "masked"),
        (lambda x: "vectors", (TypeError, ValueError), "dimensions|of <U7"),
        (lambda x: None, (TypeError, ValueError), "dimensions|object"),
        (lambda x: Producer(x.astype(np.int64)), TypeError, "int64"),
        (lambda x: Producer(x[0]), ValueError, "1 dimensions"),
        (lambda x: Producer(x, device=(10, 0)), TypeError, "kind 10"),
        (lambda x: Producer(x.astype(np.float64), device=(2, 0)), TypeError, "float64"),
        (lambda x: x * 1e30 * np.float64(1e30), ValueError, "vector 0"),
    ],
)
def test_what_is_no_vectors(x, make, error, text):
    with pytest.raises(error, match=text):
        gnnd.build(make(x), k=5)


def lost(x, **params):
    with pytest.raises(ValueError, match=r"x is of float64, .* Subtract their mean"):
        gnnd.build(x, k=3, device="cpu", **params)


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_digits_that_float32_lacks_are_told(dtype):
    x = np.random.default_rng(0).normal(size=(3000, 4)).astype(dtype)
    lost(x + 1e12)
    lost(x + 1e6, metric="cosine")
    lost(x * 1e-60)
    lost(Producer(x.astype(np.float64) + 1e9))
    lost([[10**12 + i] for i in range(9)])
    far = x + 1e12
    far[:20] = -1e30  # some that lie elsewhere change nothing
    lost(far)
    for fine in (x + 1e4, x * 1e-20, x * 1e15, np.full((9, 3), 0.1), np.where(x > 0, 1e12, x)):
        assert gnnd.build(fine, k=3, device="cpu").n == len(fine)
    ids = gnnd.build_exact(x + 1e12 - 1e12, k=3).ids
    moved = (x + 1e12) - (x + 1e12).mean(0)
    assert (np.sort(gnnd.build_exact(moved, k=3).ids) == np.sort(ids)).mean() > 0.99


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


def test_sparse_matrices_are_refused():
    class Sparse:
        def tocsr(self):
            return self

    with pytest.raises(TypeError, match="sparse"):
        gnnd.build(Sparse(), k=5)


@pytest.mark.parametrize(
    "changes, error, text",
    [
        ({}, ValueError, "not one of a GPU's memory"),
        ({"mask": object()}, TypeError, "masked"),
        ({"typestr": "<f8"}, TypeError, "float64"),
        ({"shape": (4,)}, ValueError, "1 dimensions"),
        ({"strides": (4, 4800)}, ValueError, "contiguous"),
        ({"shape": (0, 12)}, ValueError, "no vectors"),
    ],
)
def test_the_cuda_array_interface_is_checked(x, changes, error, text):
    with pytest.raises(error, match=text):
        gnnd.build(CudaArray(x, **changes), k=5)


def test_a_capsule_is_checked(x):
    with pytest.raises(TypeError, match="DLPack"):
        _native.Array.from_dlpack(object())
    capsule = x.__dlpack__()
    _native.Array.from_dlpack(capsule)
    with pytest.raises(TypeError, match="DLPack"):
        _native.Array.from_dlpack(capsule)  # used already


def test_device_arrays_need_a_gpu():
    if _native.device_count()[0] > 0:
        pytest.skip("there is one")
    with pytest.raises((RuntimeError, MemoryError)):
        gnnd.DeviceArray(0, (4, 4), "i32")


def test_arrays_of_a_graph_are_checked(x):
    graph = gnnd.build(x, k=5)
    for ids, distances, metric, error, text in (
        (graph.ids[0], graph.distances, "l2", ValueError, "1 dimensions"),
        (graph.ids, graph.distances[:, :4], "l2", ValueError, "shape"),
        (graph.ids.astype(float), graph.distances, "l2", TypeError, "whole numbers"),
        (graph.ids.astype(np.int64) << 32, graph.distances, "l2", ValueError, "2,147,483,647"),
        (graph.ids, graph.distances, "euclid", ValueError, "euclid"),
        (np.ma.masked_array(graph.ids), graph.distances, "l2", TypeError, "ids are a masked array"),
        (graph.ids, np.ma.masked_array(graph.distances), "l2", TypeError, "distances are a masked array"),
        (graph.ids, graph.distances * 1j, "l2", TypeError, "distances are of complex64"),
        (graph.ids, graph.distances.astype(str), "l2", TypeError, "distances are of <U"),
        (graph.ids, graph.distances.astype(object), "l2", TypeError, "distances are of object"),
        (graph.ids, graph.distances > 1, "l2", TypeError, "distances are of bool"),
        (graph.ids > 1, graph.distances, "l2", TypeError, "whole numbers"),
        (graph.ids, graph.distances.astype(float) * 1e99, "l2", ValueError, "beyond what float32 holds"),
        (graph.ids, None, "l2", TypeError, "distances are of object"),
    ):
        with pytest.raises(error, match=text):
            gnnd.Graph(ids, distances, metric)
    graph.ids = graph.ids[:, ::2]
    graph.distances = graph.distances[:, ::2]
    with pytest.raises(ValueError, match="contiguous"):
        gnnd.refine(x, graph)


@pytest.mark.parametrize("change", [list, lambda a: a.tolist(), lambda a: a.astype(a.dtype.newbyteorder(">"))])
def test_a_graph_is_made_of_whatever_holds_its_numbers(x, change):
    graph = gnnd.build(x, k=5)
    made = gnnd.Graph(change(graph.ids), change(graph.distances))
    np.testing.assert_array_equal(made.ids, graph.ids)
    np.testing.assert_array_equal(made.distances, graph.distances)
    assert gnnd.Graph(graph.ids.astype(np.uint64), graph.distances.astype(ml_dtypes.bfloat16)).distances.dtype == "f4"


@pytest.mark.parametrize(
    "name, change",
    [
        ("ids", lambda a: a.astype(np.int64)),
        ("ids", lambda a: a.astype(">i4")),
        ("ids", lambda a: a.view(np.float32)),
        ("ids", lambda a: a.view(np.uint32)),
        ("ids", lambda a: a.tolist()),
        ("ids", lambda a: a[0]),
        ("ids", lambda a: a.T),
        ("ids", lambda a: a[:50]),
        ("ids", np.ma.masked_array),
        ("distances", lambda a: a.astype(np.float64)),
        ("distances", lambda a: a.astype(">f4")),
        ("distances", lambda a: a.view(np.int32)),
        ("distances", lambda a: a * 1j),
        ("distances", lambda a: None),
    ],
)
def test_arrays_that_are_put_into_a_graph_are_never_taken_for_others(x, tmp_path, name, change):
    made = gnnd.build(x, k=5)
    setattr(made, name, change(getattr(made, name)))
    for call in (
        lambda: gnnd.eval(made, x),
        lambda: gnnd.refine(x, made),
        lambda: gnnd.append(x, made, x[:5]),
        lambda: gnnd.graph.symmetric_graph(made),
        lambda: gnnd.graph.search_links(x, made),
        lambda: made.save(tmp_path / "graph"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} (of a graph must stay|are)|contiguous"):
            call()


def test_a_graph_outlives_what_it_was_built_from():
    x = clustered(200, 4)
    ids = gnnd.build(x, k=3).ids
    kept = ids.copy()
    del x
    gc.collect()
    assert np.ones(10_000_000).sum() == 10_000_000  # takes memory that was given back
    np.testing.assert_array_equal(ids, kept)
