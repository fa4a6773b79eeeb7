# SPDX-License-Identifier: MIT
"""Arrays and memory of cupy, jax, torch and rmm on a GPU. Each is skipped where the library is missing."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import gnnd
from conftest import check_graph, clustered, recall_of
from gnnd import _native
from gnnd._allocators import allocator_of

if _native.device_count()[0] == 0:
    pytest.skip("no GPU: " + _native.device_count()[1], allow_module_level=True)

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # jax would take most of the GPU's memory
DTYPES = ["float32", "float16", "uint8", "int8"]


def cupy_module():
    cupy = pytest.importorskip("cupy")
    cupy.get_default_memory_pool().free_all_blocks()
    return cupy


@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy(dtype):
    cupy = cupy_module()
    host = (clustered(3000, 24) * 8).clip(0, 100).astype(dtype)
    graph = gnnd.build(cupy.asarray(host), k=12)
    ids, distances = cupy.from_dlpack(graph.ids), cupy.asarray(graph.distances)  # by both protocols
    assert ids.data.ptr == graph.ids.__cuda_array_interface__["data"][0]
    assert (ids.shape, ids.dtype, distances.dtype) == ((3000, 12), np.int32, np.float32)
    np.testing.assert_array_equal(cupy.asnumpy(ids), graph.ids.numpy())
    np.testing.assert_array_equal(cupy.asnumpy(distances), graph.distances.numpy())
    check_graph(graph, host.astype(np.float32), "l2", tolerance=1e-2)
    assert recall_of(graph, host, "l2", 10) >= 0.98


def test_cupy_rows_may_lie_apart():
    cupy = cupy_module()
    x = cupy.asarray(clustered(3000, 32))
    whole = gnnd.build(cupy.ascontiguousarray(x[::2, 4:20]), k=8, seed=3)
    slices = gnnd.build(x[::2, 4:20], k=8, seed=3)
    np.testing.assert_array_equal(whole.distances.numpy(), slices.distances.numpy())
    with pytest.raises(ValueError, match="contiguous|one behind the other"):
        gnnd.build(x.T, k=8)
    with pytest.raises(TypeError, match="float64"):
        gnnd.build(x.astype(cupy.float64), k=8)


def test_a_matrix_becomes_cupy_s():
    cupy = cupy_module()
    graph = gnnd.build(cupy.asarray(clustered(3000, 24)), k=12)
    csr = gnnd.graph.symmetric_graph(graph)
    made, expected = csr.to_cupy(), csr.on_host()
    assert made.data.data.ptr == csr.data.__cuda_array_interface__["data"][0]
    assert made.indices.data.ptr == csr.indices.__cuda_array_interface__["data"][0]
    del csr  # the matrix keeps the memory
    assert (made.get() != expected).nnz == 0
    summed = cupy.asnumpy(made @ cupy.ones(3000, cupy.float32))
    np.testing.assert_allclose(summed, expected @ np.ones(3000, np.float32), rtol=1e-5)


@pytest.mark.parametrize("given", [False, True])
def test_work_is_in_order_with_a_stream_of_cupy(given):
    cupy = cupy_module()
    wait = cupy.RawKernel(
        'extern "C" __global__ void wait(long long n) { long long t = clock64(); while (clock64() - t < n); }',
        "wait",
    )
    host, stream = clustered(20_000, 64), cupy.cuda.Stream(non_blocking=True)
    with stream:
        filled = cupy.asarray(host)
        x = cupy.zeros_like(filled)
        wait((1,), (1,), (np.int64(200_000_000),))  # a tenth of a second, in which x is still zeros
        x += filled
        if not given:
            graph = gnnd.build(x, k=10)
    if given:
        graph = gnnd.build(x, k=10, stream=stream)
    assert (graph.distances.numpy() > 0).all()
    assert gnnd.eval(graph, host).value >= 0.98


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_jax(dtype):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax without a GPU")
    host = (clustered(3000, 24) * 8).clip(0, 100).astype("float32")
    x = jax.numpy.asarray(host).astype(dtype) + jax.numpy.zeros((), dtype)  # still to be computed, as far as jax likes
    graph = gnnd.build(x, k=12)
    ids = jax.numpy.from_dlpack(graph.ids)
    assert ids.dtype == np.int32 and ids.unsafe_buffer_pointer() == graph.ids.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(np.asarray(ids), graph.ids.numpy())
    given = np.asarray(x.astype("float32"))
    check_graph(graph, given, "l2", tolerance=1e-2)
    assert recall_of(graph, given, "l2", 10) >= 0.98


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.name = "torch"
        self.torch.cuda.empty_cache()
        self.torch.cuda.reset_peak_memory_stats()

    def held(self):
        return self.torch.cuda.memory_allocated()

    def peak(self):
        return self.torch.cuda.max_memory_allocated()


class Cupy:
    def __init__(self):
        self.pool = cupy_module().get_default_memory_pool()
        self.name = "cupy"

    def held(self):
        return self.pool.used_bytes()

    def peak(self):
        return self.pool.total_bytes()


class Rmm:
    def __init__(self):
        rmm = pytest.importorskip("rmm")
        self.name = "rmm"
        self.memory = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaAsyncMemoryResource())
        rmm.mr.set_current_device_resource(self.memory)

    def held(self):
        return self.memory.allocation_counts.current_bytes

    def peak(self):
        return self.memory.allocation_counts.peak_bytes


@pytest.mark.parametrize("library", [Torch, Cupy, Rmm])
@pytest.mark.parametrize("host", [False, True])
def test_memory_comes_from_a_library(library, host):
    memory = library()
    x = clustered(20_000, 32)
    given = x if host else pytest.importorskip("torch").from_numpy(x).cuda()
    before = memory.held()
    graph = gnnd.build(given, k=16, device="cuda", allocator=memory.name)
    arrays = 0 if host else 20_000 * 16 * 8
    assert memory.held() - before >= arrays
    assert memory.peak() - before > max(arrays, x.nbytes // 2), "work memory"
    assert gnnd.eval(graph, given).value >= 0.98
    if not host:
        import torch

        ids = torch.from_dlpack(graph.ids)
        del graph
        gc.collect()
        assert memory.held() - before >= arrays // 2, "the consumer keeps the memory"
        assert int(ids.max()) < 20_000
        del ids
    gc.collect()
    assert memory.held() == before
    with pytest.raises(ValueError, match="vector 7"):
        gnnd.build(
            np.where(np.arange(20_000)[:, None] == 7, np.float32(np.nan), x), device="cuda", allocator=memory.name
        )
    assert memory.held() == before


class Failing:
    """torch's allocator, which raises after so many requests."""

    def __init__(self, requests, error):
        pytest.importorskip("torch")
        self.under, self.left, self.error, self.held = allocator_of("torch"), requests, error, set()

    def allocate(self, size, device, stream):
        if self.left == 0:
            raise self.error("no more")
        self.left -= 1
        pointer = self.under.allocate(size, device, stream)
        self.held.add(pointer)
        return pointer

    def deallocate(self, pointer, size, device, stream):
        self.held.remove(pointer)
        self.under.deallocate(pointer, size, device, stream)

    def free(self, device):
        return self.under.free(device)


@pytest.mark.parametrize("error", [MemoryError, KeyError])
def test_what_an_allocator_raises_reaches_the_caller(error):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(clustered(20_000, 32)).cuda()
    counted = Failing(-1, error)
    gnnd.build(x, k=16, allocator=counted)
    requests = -1 - counted.left
    assert requests > 2 and not counted.held
    for served in range(requests):
        failing = Failing(served, error)
        with pytest.raises(error, match="no more"):
            gnnd.build(x, k=16, allocator=failing)
        gc.collect()
        assert not failing.held
