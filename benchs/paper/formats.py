# SPDX-License-Identifier: MIT
"""Files of vectors: what they are is recognised by name and header, and their size is checked.

Formats: fvecs, bvecs (an int32 d before each row); fbin, u8bin, i8bin (a header of two int32 or of two int64, n and d);
ann-benchmarks' HDF5 (`train`). gnnd's own tools read all but the last and those with 16-byte headers, which rewrite()
turns into plain ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BLOCK_BYTES = 64 << 20
BIN_TYPES = {"fbin": np.float32, "u8bin": np.uint8, "i8bin": np.int8}
VECS_TYPES = {"fvecs": np.float32, "bvecs": np.uint8}
HDF5 = ("hdf5", "h5")
EXTENSIONS = (*BIN_TYPES, *VECS_TYPES, *HDF5)


class FormatError(Exception):
    """A file that is not what its name says; the message names it."""


@dataclass(frozen=True)
class VectorFile:
    """The shape and the type of a file of vectors."""

    path: Path
    n: int
    d: int
    dtype: np.dtype
    header: int  # bytes before the first row: 8 or 16; 0 for fvecs, bvecs and HDF5
    row_bytes: int  # with what stands before each row

    @property
    def extension(self) -> str:
        """Of its name, without the dot."""
        return self.path.suffix[1:].lower()

    @property
    def is_plain(self) -> bool:
        """True if gnnd reads it as it is."""
        return self.extension not in HDF5 and self.header != 16


def _of_bin(path: Path, size: int, dtype: np.dtype) -> VectorFile:
    for width, header in ((np.int32, 8), (np.int64, 16)):
        if size < header:
            continue
        n, d = (int(value) for value in np.fromfile(path, width, 2))
        if n > 0 and 0 < d <= 1 << 20 and size == header + n * d * dtype.itemsize:
            return VectorFile(path, n, d, dtype, header, d * dtype.itemsize)
    raise FormatError(f"{path}: {size} bytes do not fit n and d of its header, be it of 8 or of 16 bytes")


def _of_vecs(path: Path, size: int, dtype: np.dtype) -> VectorFile:
    first = np.fromfile(path, np.int32, 1)
    d = int(first[0]) if first.size else 0
    row = 4 + d * dtype.itemsize
    if not 0 < d <= 1 << 20 or size % row != 0:
        raise FormatError(f"{path}: {size} bytes are no whole number of rows of {d} components")
    found = VectorFile(path, size // row, d, dtype, 0, row)
    last = int(np.fromfile(path, np.int32, 1, offset=(found.n - 1) * row)[0])
    if last != d:
        raise FormatError(f"{path}: the first row has {d} components, the last one {last}")
    return found


def _of_hdf5(path: Path) -> VectorFile:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if "train" not in file or file["train"].ndim != 2:
                raise FormatError(f"{path}: has no matrix `train` as ann-benchmarks' files have")
            n, d = file["train"].shape
            kind = file["train"].dtype
    except OSError as error:
        raise FormatError(f"{path}: {error}") from error
    dtype = np.dtype(np.uint8 if kind == np.uint8 else np.float32)
    return VectorFile(path, n, d, dtype, 0, d * dtype.itemsize)


def recognise(path: Path) -> VectorFile:
    """Raises FormatError where the name or the size is not that of a file of vectors."""
    extension = path.suffix[1:].lower()
    if not path.is_file():
        raise FormatError(f"{path}: no such file")
    size = path.stat().st_size
    if extension in BIN_TYPES:
        return _of_bin(path, size, np.dtype(BIN_TYPES[extension]))
    if extension in VECS_TYPES:
        return _of_vecs(path, size, np.dtype(VECS_TYPES[extension]))
    if extension in HDF5:
        return _of_hdf5(path)
    raise FormatError(f"{path}: no known extension, these are {', '.join(EXTENSIONS)}")


def blocks(file: VectorFile, rows: int) -> Iterator[np.ndarray]:
    """The first rows, some at a time: arrays of count x d of the file's type."""
    at_once = max(1, BLOCK_BYTES // file.row_bytes)
    for begin in range(0, rows, at_once):
        yield read(file, np.arange(begin, min(begin + at_once, rows)))


def read(file: VectorFile, rows: np.ndarray) -> np.ndarray:
    """Chosen rows in ascending order, len(rows) x d of the file's type."""
    if file.extension in HDF5:
        import h5py

        with h5py.File(file.path, "r") as opened:
            contiguous = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
            chosen = slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else rows
            return opened["train"][chosen].astype(file.dtype)
    raw = np.memmap(file.path, np.uint8, "r", offset=file.header, shape=(file.n, file.row_bytes))
    bytes_before = file.row_bytes - file.d * file.dtype.itemsize
    return np.ascontiguousarray(raw[rows, bytes_before:]).view(file.dtype)


def rewrite(file: VectorFile, rows: int, target: Path) -> None:
    """Writes the first rows as fbin, u8bin or i8bin with an 8-byte header; target appears when it is whole."""
    wanted = {np.dtype(dtype): name for name, dtype in BIN_TYPES.items()}[file.dtype]
    if target.suffix != f".{wanted}" or not 0 < rows <= file.n:
        raise FormatError(f"{target}: {rows} of {file.n} rows of {file.path} belong into a .{wanted}")
    part = target.with_name(target.name + ".part")
    with part.open("wb") as out:
        np.array([rows, file.d], np.int32).tofile(out)
        for block in blocks(file, rows):
            block.tofile(out)
    part.replace(target)


def read_graph(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """ids and distances, n x k each, of a .gnnd file (contrib/docs/formats.md)."""
    with path.open("rb") as file:
        head = file.read(64)
        version = int.from_bytes(head[8:12], "little")
        sizes = {1: 64, 2: 64, 3: 80, 4: 120}
        if head[:8] != b"GNNDGRPH" or version not in sizes:
            raise FormatError(f"{path}: is no graph file of version 1 to 4")
        n, k = (int(value) for value in np.frombuffer(head[16:32], np.uint64))
        file.seek(sizes[version])
        ids = np.fromfile(file, np.int32, n * k)
        distances = np.fromfile(file, np.float32, n * k)
    if distances.size != n * k:
        raise FormatError(f"{path}: is cut off")
    return ids.reshape(n, k), distances.reshape(n, k)
