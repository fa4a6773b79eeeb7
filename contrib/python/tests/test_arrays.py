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


def test_booleans_are_bytes(tmp_path):
    x = np.random.default_rng(0).random((200, 40)) > 0.5
    assert _arrays.vectors(x).native.dtype == "u8" and _arrays.vectors(x).native.pointer == x.ctypes.data
    same_graph(x, x.astype(np.uint8))
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(gnnd.read_vectors(tmp_path / "x.npy"), x.astype(np.uint8))


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
    with pytest.raises(ValueError, match="Subtract their mean"):
        gnnd.build(Producer(x.astype(np.float64) + 1e9), k=5)
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
        (lambda x: np.ma.masked_array(x), TypeError, "masked"),
        (lambda x: "vectors", (TypeError, ValueError), "x is .vectors.; vectors are an array"),
        (lambda x: None, (TypeError, ValueError), "x is None; vectors are an array"),
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


@pytest.mark.parametrize(
    "given, error, text",
    [
        ((0.5, (4, 4), "i32"), TypeError, "device must be an int, not float: 0.5"),
        ((0, (4, None), "i32"), TypeError, "shape must be an int, not NoneType: None"),
        ((0, (4, -1), "i32"), ValueError, "shape = -1, allowed are 0 and more"),
        ((0, (4, 4), np.int32), ValueError, "dtype = .* allowed are i32, i64, f32"),
    ],
)
def test_device_arrays_are_checked(given, error, text):
    with pytest.raises(error, match=text):
        gnnd.DeviceArray(*given)


def test_device_arrays_need_a_gpu():
    if _native.device_count()[0] > 0:
        pytest.skip("there is one")
    with pytest.raises((RuntimeError, MemoryError)):
        gnnd.DeviceArray(0, (4, 4), "i32")


def test_a_graph_outlives_what_it_was_built_from():
    x = clustered(200, 4)
    ids = gnnd.build(x, k=3).ids
    kept = ids.copy()
    del x
    gc.collect()
    assert np.ones(10_000_000).sum() == 10_000_000  # takes memory that was given back
    np.testing.assert_array_equal(ids, kept)
