# SPDX-License-Identifier: MIT
"""Device memory from the libraries that a program uses besides."""

from __future__ import annotations

from typing import Any, Protocol

# CUDA's name for its legacy default stream, which these libraries call 0.
_LEGACY_STREAM = 1


class Allocator(Protocol):
    """Gives device memory. Called with the GIL, from the thread that builds and from whoever drops a graph last."""

    def allocate(self, size: int, device: int, stream: int) -> int:
        """A pointer to so many bytes or more on GPU `device`, aligned to 256 bytes, for work on the stream (a handle,
        or 1 or 2 for CUDA's default streams). :raises MemoryError: where there are none"""

    def deallocate(self, pointer: int, size: int, device: int, stream: int) -> None:
        """Takes it back. Work on it may still be under way on that stream, but on no other."""

    def free(self, device: int) -> int:
        """Bytes that could be had at once, for plans; 0: unknown, and builds take what makes them fastest."""


def allocator_of(given: Any) -> Allocator | None:
    """:raises ValueError: for a name that is not known, TypeError for what is no allocator, ImportError"""
    if given is None:
        return None
    if isinstance(given, str):
        if given not in _KINDS:
            raise ValueError(f"unknown allocator '{given}'; known are {', '.join(_KINDS)}")
        if given not in _made:
            _made[given] = _KINDS[given]()
        return _made[given]
    if missing := [name for name in ("allocate", "deallocate", "free") if not callable(getattr(given, name, None))]:
        raise TypeError(f"the allocator {type(given).__name__} has no {', '.join(missing)}")
    return given


class _Torch:
    """The allocator behind torch's CUDA tensors."""

    def __init__(self) -> None:
        import torch

        self._torch, self._cuda = torch, torch.cuda
        torch.cuda.init()

    def allocate(self, size: int, device: int, stream: int) -> int:
        try:
            return self._cuda.caching_allocator_alloc(size, device, _number(stream))
        except self._torch.OutOfMemoryError as error:
            raise MemoryError(str(error)) from None

    def deallocate(self, pointer: int, size: int, device: int, stream: int) -> None:
        self._cuda.caching_allocator_delete(pointer)

    def free(self, device: int) -> int:
        cached = self._cuda.memory_reserved(device) - self._cuda.memory_allocated(device)
        return self._cuda.mem_get_info(device)[0] + cached


class _Cupy:
    """cupy's current allocator: its pool, or what ``cupy.cuda.set_allocator`` has chosen."""

    def __init__(self) -> None:
        import cupy

        self._cupy, self._cuda = cupy, cupy.cuda
        self._held: dict[int, Any] = {}

    def allocate(self, size: int, device: int, stream: int) -> int:
        with self._cuda.Device(device), self._stream(stream):
            memory = self._cuda.alloc(size)
        self._held[memory.ptr] = memory
        return memory.ptr

    def deallocate(self, pointer: int, size: int, device: int, stream: int) -> None:
        with self._cuda.Device(device), self._stream(stream):
            del self._held[pointer]

    def free(self, device: int) -> int:
        with self._cuda.Device(device) as current:
            return current.mem_info[0] + self._cupy.get_default_memory_pool().free_bytes()

    def _stream(self, stream: int) -> Any:
        return self._cuda.ExternalStream(_number(stream)) if _number(stream) else self._cuda.Stream.null


class _Rmm:
    """rmm's resource of the device, as it is when memory is asked for."""

    def __init__(self) -> None:
        import rmm
        from rmm.pylibrmm.stream import Stream

        self._resource_of, self._stream = rmm.mr.get_per_device_resource, Stream
        self._resources: dict[int, Any] = {}

    def allocate(self, size: int, device: int, stream: int) -> int:
        resource = self._resource_of(device)
        pointer = resource.allocate(size, self._stream(_Handle(stream)))
        self._resources[pointer] = resource  # that it must go back to
        return pointer

    def deallocate(self, pointer: int, size: int, device: int, stream: int) -> None:
        self._resources.pop(pointer).deallocate(pointer, size, self._stream(_Handle(stream)))

    def free(self, device: int) -> int:
        return 0


class _Handle:
    """A stream by CUDA's protocol."""

    def __init__(self, stream: int) -> None:
        self._number = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, _number(self._number)


def _number(stream: int) -> int:
    return 0 if stream == _LEGACY_STREAM else stream


_KINDS: dict[str, type[Allocator]] = {"torch": _Torch, "cupy": _Cupy, "rmm": _Rmm}
_made: dict[str, Allocator] = {}
