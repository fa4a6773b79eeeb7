# SPDX-License-Identifier: MIT
"""Arrays in: numpy's and whatever speaks DLPack or the CUDA array interface, without a copy where none is needed."""

from __future__ import annotations

import operator
import os
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._device_array import LEGACY_STREAM
from ._digits import narrowed, widened
from ._process import use_cuda

# The element types of vectors: numpy's name (ml_dtypes' for bfloat16) and gnnd's.
_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "uint8": "u8", "int8": "i8"}
_DTYPE_NAMES = " and ".join([", ".join([*_DTYPES][:-1]), [*_DTYPES][-1]])

# Kinds of devices in DLPack.
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3


@dataclass(frozen=True)
class Vectors:
    """n x d vectors, and what keeps their memory alive."""

    native: _native.Array
    owner: Any
    stream: int = 0  # that the caller's work is on; 0 on the host
    wide: np.ndarray | None = None  # as they were before they were converted

    @property
    def n(self) -> int:
        return self.native.rows

    @property
    def d(self) -> int:
        return self.native.columns

    @property
    def device(self) -> int:
        """The GPU in whose memory they lie, -1 for the host."""
        return self.native.device


class Place(NamedTuple):
    """The GPU and the stream of the arrays of one call."""

    gpu: int  #: that holds some of them; -1: none
    stream: int  #: of that GPU, which all of them are in order with; 0: none

    def wait(self) -> None:
        """Waits until the arrays are complete, for work that runs on a stream of its own."""
        if self.gpu >= 0:
            _native.synchronize(self.gpu, self.stream)


def place_of(stream: Any, **arrays: Any) -> Place:
    """The one GPU and the one stream of a call, whose arrays these are, by their names.

    A build runs on one stream: what made the arrays is in order with it only if every producer is told that stream,
    whichever library the others are of.

    :param stream: None: the current one (torch, cupy) of the first array on a GPU, else the legacy default stream
    :raises ValueError: where arrays lie on two GPUs
    """
    gpu, number, first = -1, 0, ""
    for name, x in arrays.items():
        there = _gpu_of(x)
        if there >= 0 > gpu:
            gpu, number, first = there, stream_of(stream, x, there), name
        elif there not in (-1, gpu):
            raise ValueError(f"{name} lies on cuda:{there} and {first} on cuda:{gpu}; a call takes arrays of one GPU")
    return Place(gpu, number)


def _gpu_of(x: Any) -> int:
    """The GPU in whose memory an array lies, -1 for the host and for what is no array."""
    if isinstance(x, np.ndarray):
        return -1
    if hasattr(x, "__dlpack_device__"):
        kind, index = x.__dlpack_device__()
        return int(index) if kind == _CUDA else -1
    if hasattr(x, "__cuda_array_interface__"):
        use_cuda()
        return _native.device_of(x.__cuda_array_interface__["data"][0])
    return -1


def vectors(x: Any, *, stream: Any = None, name: str = "x") -> Vectors:
    """The vectors in any array.

    Anything that numpy makes an array of is one on the host: float32, float16, bfloat16 (ml_dtypes), uint8 and int8
    are taken as they are, bool as uint8, rows may lie apart (slices, memory-mapped files); float64 is converted where
    float32 has the digits (:func:`narrowed`), and what is not in C order is copied. Of other libraries' arrays DLPack
    gives the memory, on the host or a GPU, and the CUDA array interface that of libraries without DLPack.

    :param stream: of arrays on a GPU; None: the caller's current one (torch, cupy), else the legacy default stream
    :raises TypeError: for types that are no vectors', ValueError for shapes that are none
    """
    _require_dense(x, name)
    if isinstance(x, np.ndarray):
        return _of_numpy(x, name)
    if hasattr(x, "__dlpack_device__"):
        return _of_dlpack(x, stream, name)
    if hasattr(x, "__cuda_array_interface__"):
        return _of_cuda_array(x, stream, name)
    array = np.asarray(x)
    if array.dtype.kind in "iub" and not hasattr(x, "__array__"):  # lists of numbers, as they are written
        array = widened(array, name)
    return _of_numpy(array, name)


def rows_on_host(x: Any, name: str = "x") -> np.ndarray:
    """The vectors in any array as numpy's, in C order: float32, float16, uint8 and int8 as they are, all other numbers
    as float32.

    :raises TypeError: for what is no numbers, ValueError for shapes that are no vectors' and as :func:`narrowed`
    """
    _require_dense(x, name)
    array = _bool_as_bytes(np.asarray(x))
    _require_matrix(array.shape, name)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    elif array.dtype.name not in _DTYPES:
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{name} is of {array.dtype}; vectors are numbers")
        array = narrowed(widened(array, name), name)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def numpy_name(dtype: Any) -> str:
    """numpy's name of a type, by that name or the type itself, as numpy or another library has it."""
    try:
        return np.dtype(dtype).name
    except TypeError:  # bfloat16, which is not numpy's; torch.float16
        return str(dtype).rpartition(".")[2]


def dtype_name(dtype: Any) -> str:
    """gnnd's name of a type of vectors, by numpy's or the type itself.

    :raises TypeError: for types that are no vectors'
    """
    name = numpy_name(dtype)
    if name not in _DTYPES:
        raise TypeError(f"dtype = {name}; vectors are {_DTYPE_NAMES}")
    return _DTYPES[name]


def on_host(given: Vectors) -> Vectors:
    """These vectors in host memory: themselves, where they lie there."""
    if given.device < 0:
        return given
    native = given.native
    name = next(name for name, dtype in _DTYPES.items() if dtype == native.dtype)
    size = 2 if name == "bfloat16" else np.dtype(name).itemsize
    rows = np.empty((native.rows, native.columns * size), np.uint8)
    copy = _native.Array(rows, rows.ctypes.data, native.rows, native.columns, rows.shape[1], native.dtype)
    native.copy_to_host(copy, given.stream)
    return Vectors(copy, rows)


def stream_of(given: Any, x: Any, device: int) -> int:
    """A stream's number: CUDA's handle, 1 for the legacy default stream, 2 for the thread's default stream."""
    if given is None:
        library = type(x).__module__.partition(".")[0]
        if library == "torch":
            given = sys.modules["torch"].cuda.current_stream(device)
        elif library == "cupy":
            given = sys.modules["cupy"].cuda.get_current_stream(device)
        else:
            return LEGACY_STREAM
    if hasattr(given, "__cuda_stream__"):
        given = given.__cuda_stream__()[1]
    elif hasattr(given, "cuda_stream"):
        given = given.cuda_stream
    elif hasattr(given, "ptr"):
        given = given.ptr
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"stream must be an int or a stream of torch or cupy, not {type(given).__name__}") from None
    if number < 0:
        raise ValueError(f"stream = {number}; a stream is a handle, or 1 or 2 for CUDA's default streams")
    return number or LEGACY_STREAM


def _require_dense(x: Any, name: str) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; vectors have all their components")
    if hasattr(x, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix; vectors are dense: {name}.toarray()")
    if x is None or isinstance(x, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is {x!r}; vectors are an array, those of a file gnnd.read_vectors() of it")


def _require_matrix(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} has {len(shape)} dimensions, of shape {tuple(shape)}; vectors are n x d")


def _bool_as_bytes(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint8) if x.dtype == np.bool_ else x


def _of_numpy(x: np.ndarray, name: str) -> Vectors:
    _require_matrix(x.shape, name)
    x = _bool_as_bytes(x)
    if x.dtype.name not in (*_DTYPES, "float64"):
        raise TypeError(f"{name} is of {x.dtype}; vectors are of {_DTYPE_NAMES}, and float64 is converted")
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    wide = None
    if x.dtype == np.float64:
        wide, x = x, narrowed(x, name)
    size, (rows, columns) = x.dtype.itemsize, x.shape
    row_stride, column_stride = x.strides
    if (columns > 1 and column_stride != size) or (rows > 1 and row_stride < columns * size) or not x.flags.aligned:
        x = np.ascontiguousarray(x)
        row_stride = x.strides[0]
    stride = row_stride if rows > 1 else columns * size
    return Vectors(_native.Array(x, x.ctypes.data, rows, columns, stride, _DTYPES[x.dtype.name]), x, wide=wide)


def _of_dlpack(x: Any, stream: Any, name: str) -> Vectors:
    _require_matrix(tuple(x.shape), name)
    kind, index = x.__dlpack_device__()
    if kind not in (_CPU, _CUDA, _CUDA_HOST):
        raise TypeError(f"{name} lies on a device of DLPack's kind {int(kind)}; gnnd works on host and CUDA memory")
    dtype = str(x.dtype).rpartition(".")[2]
    if dtype not in _DTYPES and (dtype != "float64" or kind == _CUDA):
        raise TypeError(f"{name} is of {dtype}; vectors are of {_DTYPE_NAMES}, and float64 on the host is converted")
    if kind == _CUDA:
        use_cuda()
        number = stream_of(stream, x, index)
        try:
            return Vectors(_native.Array.from_dlpack(x.__dlpack__(stream=number)), x, number)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if dtype == "float64":
        return _of_numpy(np.from_dlpack(x), name)
    try:
        return Vectors(_native.Array.from_dlpack(x.__dlpack__()), x)
    except ValueError:  # not in C order
        return _of_numpy(np.from_dlpack(x), name)


def _of_cuda_array(x: Any, stream: Any, name: str) -> Vectors:
    interface = x.__cuda_array_interface__
    shape, (pointer, _) = interface["shape"], interface["data"]
    _require_matrix(shape, name)
    if interface.get("mask") is not None:
        raise TypeError(f"{name} is a masked array; vectors have all their components")
    dtype = np.dtype(interface["typestr"])
    if dtype.name not in _DTYPES:
        raise TypeError(f"{name} is of {dtype}; vectors on a GPU are of {_DTYPE_NAMES}")
    rows, columns = shape
    row_stride, column_stride = interface.get("strides") or (columns * dtype.itemsize, dtype.itemsize)
    if (columns > 1 and column_stride != dtype.itemsize) or (rows > 1 and row_stride < columns * dtype.itemsize):
        raise ValueError(f"{name}: rows whose components do not lie one behind the other; make it contiguous")
    if rows == 0 or columns == 0:
        raise ValueError(f"{name} is of shape {tuple(shape)}; there are no vectors in it")
    use_cuda()
    device = _native.device_of(pointer)
    if device < 0:
        raise ValueError(f"{name}: the CUDA array interface gives a pointer that is not one of a GPU's memory")
    number = stream_of(stream, x, device)
    producer = interface.get("stream")
    if producer is not None and not (isinstance(producer, int) and producer > 0):
        raise ValueError(f"{name}: the CUDA array interface knows no stream {producer!r}; it is a handle, 1 or 2")
    if producer is not None and producer != number:
        _native.synchronize(device, producer)  # what is still written there is complete then
    native = _native.Array(
        x, pointer, rows, columns, row_stride if rows > 1 else columns * dtype.itemsize, _DTYPES[dtype.name], device
    )
    return Vectors(native, x, number)
