# SPDX-License-Identifier: MIT
"""A graph's arrays in the memory of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._allocators import Allocator
from ._process import use_cuda

# CUDA's name for its legacy default stream, in DLPack and in the CUDA array interface.
LEGACY_STREAM = 1

_NUMPY = {"i32": np.dtype(np.int32), "i64": np.dtype(np.int64), "f32": np.dtype(np.float32)}


class DeviceArray:
    """An array on a GPU. ``torch.from_dlpack(a)``, ``cupy.from_dlpack(a)`` and the like see it without a copy;
    ``a.numpy()`` copies it to the host. All work that made it is complete: it may be used on any stream. Its memory is
    of CUDA's pool, which other processes cannot open (of the driver where there are several GPUs), or of the allocator
    that a build was given."""

    def __init__(
        self, device: int, shape: tuple[int, ...], dtype: str, allocator: Allocator | None = None, stream: int = 0
    ) -> None:
        device = _native.whole("device", device, 0)
        shape = tuple(_native.whole("shape", extent, 0) for extent in shape)
        if dtype not in _NUMPY:
            raise ValueError(f"dtype = {dtype!r}, allowed are {', '.join(_NUMPY)}")
        use_cuda()
        self._memory = _native.DeviceMemory(device, shape, dtype, allocator, stream)

    @classmethod
    def _of(cls, memory: _native.DeviceMemory) -> DeviceArray:
        """One that the native functions have made."""
        array = cls.__new__(cls)
        array._memory = memory
        return array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._memory.shape

    @property
    def dtype(self) -> np.dtype:
        return _NUMPY[self._memory.dtype]

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return self._memory.device

    def _view(self) -> _native.Array:
        use_cuda()  # in a process that was forked there is nothing to see
        return self._memory.view()

    def numpy(self, *, stream: int = LEGACY_STREAM) -> np.ndarray:
        """A copy on the host. :param stream: that others may have written to the array on; a number as for builds"""
        use_cuda()
        out = np.empty(self.shape, self.dtype)
        self._memory.read(out.ctypes.data, stream)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a GPU becomes one of numpy by a copy only")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device  # kDLCUDA

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"lies on cuda:{self.device}, not on DLPack's device {tuple(dl_device)}")
        if copy:
            raise BufferError("gives its memory itself, no copy")
        use_cuda()
        return self._memory.to_dlpack()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        use_cuda()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._memory.pointer, False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(cuda:{self.device}, {' x '.join(map(str, self.shape))}, {self.dtype})"
