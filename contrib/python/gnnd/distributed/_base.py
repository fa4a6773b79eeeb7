# SPDX-License-Identifier: MIT
"""The base: a file of vectors, read in ranges of rows, here or in an object store."""

from __future__ import annotations

import io
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import _native
from .._paths import path_of
from ._storage import is_url
from ._threads import in_threads

_GAP = 1 << 16  # bytes: what lies farther apart is not read between
_READERS = 16
_BLOCK = 32 << 20  # bytes of a file that a thread reads at a time
_NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "u8": np.uint8, "i8": np.int8}
_OF_VECTORS = {name: dtype for name, dtype in _native.vector_formats.items() if dtype in _native.vector_dtypes}
_BIN = {name: dtype for name, dtype in _OF_VECTORS.items() if name.endswith("bin")}
_VECS = {name: dtype for name, dtype in _OF_VECTORS.items() if name.endswith("vecs")}
_NPY = {"<f4": "f32", "<f2": "f16", "|u1": "u8", "|i1": "i8"}


def numpy_type(dtype: str) -> type:
    """The type as which numpy reads elements of gnnd's type: bfloat16 as its bits."""
    return _NUMPY[dtype]


def new_array(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """With nothing in it yet, in memory that others gave back and, where it is large enough, in huge pages: to get new
    memory from the system takes longer than to read and verify what is then put there."""
    memory: Any = _native.new_bytes(shape[0] * shape[1] * np.dtype(dtype).itemsize)
    return memory.view(dtype).reshape(shape)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Rows:
    """Vectors in memory, and how the native functions see them."""

    array: np.ndarray
    dtype: str

    @property
    def native(self) -> _native.Array:
        rows, columns = self.array.shape
        stride = columns * self.array.itemsize
        return _native.Array(self.array, self.array.ctypes.data, rows, columns, stride, self.dtype)


class Base(Protocol):
    """Vectors that are read by rows. ``record`` is the manifest's: path, n, d, dtype, checksum, ..."""

    record: dict[str, Any]

    def read(self, begin: int, count: int, threads: int = 1) -> Rows:
        """Rows [begin, begin + count), of a file by so many threads. :raises OSError: truncated, or it cannot be
        read"""


class File:
    """A file that the library reads, in any of its formats."""

    def __init__(self, path: str) -> None:
        if not os.path.exists(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        self._path = path
        self.record: dict[str, Any] = _native.base_of_file(path)
        if self.record["dtype"] not in _NUMPY:
            raise ValueError(f"{path} holds {self.record['dtype']}, no vectors")

    def read(self, begin: int, count: int, threads: int = 1) -> Rows:
        dtype = self.record["dtype"]
        rows = Rows(new_array((count, self.record["d"]), _NUMPY[dtype]), dtype)
        block = max(1, count if threads == 1 else _BLOCK // max(1, rows.array[:1].nbytes))

        def read(at: int) -> None:
            _native.read_vectors(self._path, Rows(rows.array[at : at + block], dtype).native, begin + at)

        in_threads(threads, read, range(0, count, block))
        return rows


class Remote:
    """A file at a URL: fbin, f16bin, bf16bin, u8bin, i8bin, fvecs, bvecs, or npy in C order."""

    def __init__(self, url: str, storage_options: dict[str, Any] | None = None) -> None:
        from ._objects import Reader

        self._reader = Reader(url, storage_options)
        size = self._reader.size
        kind = url.rpartition(".")[2].lower()
        head = self._reader.read(0, min(size, 4096))
        try:
            n, d, dtype = self._shape(kind, head, size)
        except (ValueError, struct.error) as error:
            raise OSError(f"{url}: not a file of vectors that can be read in ranges: {error}") from None
        if size != self._begin + n * self._row:
            raise OSError(f"{url}: {size} bytes, {self._begin + n * self._row} expected for {n} x {d}")
        self._dtype, self._d = dtype, d
        identity = _native.identify_rows(n, d, dtype, lambda begin, count: self.read(begin, count).native)
        self.record: dict[str, Any] = {
            "path": url,
            "format": kind,
            "n": n,
            "d": d,
            "dtype": dtype,
            "bytes": size,
            "modified": 0,
            "checksum": identity[3],
        }

    def _shape(self, kind: str, head: bytes, size: int) -> tuple[int, int, str]:
        self._skip = 0  # bytes before each row's components
        if kind in _BIN:
            dtype = _BIN[kind]
            n, d = struct.unpack_from("<Ii", head)
            self._begin = 8
        elif kind in _VECS:
            dtype = _VECS[kind]
            (d,) = struct.unpack_from("<i", head)
            self._begin, self._skip = 0, 4
            n = size // (4 + max(d, 1) * np.dtype(_NUMPY[dtype]).itemsize)
        elif kind == "npy":
            file = io.BytesIO(head)
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, found = read(file)
            if fortran or len(shape) != 2 or found.str not in _NPY:
                raise ValueError(f"an array of {found.str} and shape {shape}{', Fortran order' if fortran else ''}")
            dtype, (n, d) = _NPY[found.str], shape
            self._begin = file.tell()
        else:
            raise ValueError(f"unknown format '{kind}'; known are {', '.join([*_BIN, *_VECS, 'npy'])}")
        if n < 1 or d < 1:
            raise ValueError(f"{n} x {d}")
        self._row = self._skip + d * np.dtype(_NUMPY[dtype]).itemsize
        return n, d, dtype

    def read(self, begin: int, count: int, threads: int = 1) -> Rows:
        data = self._reader.read(self._begin + begin * self._row, count * self._row)
        rows = np.frombuffer(data, np.uint8).reshape(count, self._row)
        if self._skip:
            if (rows[:, :4] != np.frombuffer(struct.pack("<i", self._d), np.uint8)).any():
                raise OSError(f"{self._reader.url}: a row of rows {begin} + {count} does not have d = {self._d}")
            rows = np.ascontiguousarray(rows[:, 4:])
        return Rows(rows.view(_NUMPY[self._dtype]), self._dtype)


def scattered(base: Base, numbers: np.ndarray) -> Rows:
    """Some rows, whose numbers ascend: those that lie near each other are read at once, and some places at a time."""
    row = base.read(0, 1).array.nbytes
    numbers = numbers.astype(np.int64)
    places = np.split(numbers, np.flatnonzero(np.diff(numbers) * row > _GAP) + 1)

    def read(wanted: np.ndarray) -> np.ndarray:
        begin = int(wanted[0])
        return base.read(begin, int(wanted[-1]) + 1 - begin).array[wanted - begin]

    with ThreadPoolExecutor(_READERS) as readers:
        array = np.concatenate(list(readers.map(read, places)))
    return Rows(array, str(base.record["dtype"]))


def open_base(path: str | os.PathLike[str], storage_options: dict[str, Any] | None = None) -> Base:
    """The file of vectors at a path or URL.

    :raises OSError: missing, truncated, no file of vectors
    """
    name = path_of(path, "base")
    return Remote(name, storage_options) if is_url(name) else File(os.path.abspath(name))
