# SPDX-License-Identifier: MIT
"""Sparse matrices in compressed rows, in host memory or on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from . import _native
from ._device_array import DeviceArray


class Csr(NamedTuple):
    """A sparse n x n matrix in compressed rows: row i has columns indices[indptr[i]:indptr[i + 1]], ascending. Its
    arrays lie on the host (numpy) or on a GPU (:class:`gnnd.DeviceArray`)."""

    indptr: np.ndarray | DeviceArray  #: n + 1, int64
    indices: np.ndarray | DeviceArray  #: int32
    data: np.ndarray | DeviceArray  #: float32, as many

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.indptr) - 1

    def on_host(self) -> Any:
        """The matrix in host memory: ``scipy.sparse.csr_matrix`` where SciPy is installed, else a Csr."""
        return on_host_of(Csr(*(one.numpy() if isinstance(one, DeviceArray) else one for one in self)))

    def to_torch(self) -> Any:
        """A tensor of torch.sparse_csr on the same device. It shares indices and data; offsets become int32 as the
        indices are, where 2^31 entries or more make the indices int64 as the offsets are."""
        import torch

        indptr, indices, data = (torch.from_dlpack(cast(Any, one)) for one in self)
        if len(data) < 2**31:
            indptr = indptr.int()
        else:
            indices = indices.long()
        return torch.sparse_csr_tensor(indptr, indices, data, self.shape)

    def to_cupy(self) -> Any:
        """``cupyx.scipy.sparse.csr_matrix`` that shares indices and data; cupyx's offsets are int32.

        :raises ValueError: for 2^31 entries or more
        """
        if len(self.data) >= 2**31:
            raise ValueError(f"{len(self.data)} entries; cupyx's matrices have less than 2,147,483,648")
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        indptr, indices, data = (cupy.asarray(one) for one in self)
        return csr_matrix((data, indices, indptr.astype(cupy.int32)), shape=self.shape)


def csr_of(arrays: tuple[Any, Any, Any]) -> Any:
    """Makes of a native function's arrays what users get: SciPy's matrix, or a Csr where it lies on a GPU or SciPy is
    missing."""
    if isinstance(arrays[0], _native.DeviceMemory):
        return Csr(*map(DeviceArray._of, arrays))
    return on_host_of(Csr(*arrays))


def on_host_of(csr: Csr) -> Any:
    """SciPy's matrix where it is installed."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        return csr
    matrix = csr_matrix((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    matrix.has_canonical_format = True
    return matrix
