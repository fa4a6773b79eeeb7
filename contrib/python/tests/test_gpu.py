# SPDX-License-Identifier: MIT
"""Vectors and graphs on a GPU. Skipped without one; most need torch, too."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

import gnnd
from conftest import check_graph, clustered, recall_of
from gnnd import _native

if _native.device_count()[0] == 0:
    pytest.skip("no GPU: " + _native.device_count()[1], allow_module_level=True)

torch = pytest.importorskip("torch")


def on_host(array: gnnd.DeviceArray) -> np.ndarray:
    return torch.from_dlpack(array).cpu().numpy()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "int8"])
def test_the_graph_stays_where_the_vectors_are(dtype):
    x = torch.randint(0, 100, (3000, 24), device="cuda").to(getattr(torch, dtype))
    graph = gnnd.build(x, k=12)
    assert isinstance(graph.ids, gnnd.DeviceArray)
    assert graph.ids.shape == graph.distances.shape == (3000, 12)
    assert graph.stats["device"] == f"cuda:{x.device.index}"
    seen = torch.from_dlpack(graph.ids)
    assert seen.device == x.device
    assert seen.dtype == torch.int32
    assert seen.data_ptr() == graph.ids.__cuda_array_interface__["data"][0]
    host = x.float().cpu().numpy()
    check_graph(graph, host, "l2", tolerance=1e-2)
    assert recall_of(graph, host, "l2", 10) >= 0.98
    np.testing.assert_array_equal(graph.ids.numpy(), on_host(graph.ids))
    assert gnnd.eval(graph, x, objects=0).value >= 0.98


def test_host_arrays_come_back_to_the_host(x):
    graph = gnnd.build(x, k=10, device="cuda")
    assert isinstance(graph.ids, np.ndarray)
    assert graph.stats["device"] == "cuda:0"
    check_graph(graph, x, "l2", tolerance=1e-3)


@pytest.mark.parametrize("given", [False, True])
def test_work_is_in_order_with_the_stream(given):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(20_000, 64, device="cuda")
        torch.cuda._sleep(200_000_000)  # a tenth of a second, in which x is still zeros
        x += torch.randn(20_000, 64, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
        if not given:
            graph = gnnd.build(x, k=10)
    if given:
        graph = gnnd.build(x, k=10, stream=stream)
    assert (torch.from_dlpack(graph.distances) > 0).all()
    assert gnnd.eval(graph, x).value >= 0.98


def test_all_arrays_of_a_merge_are_in_order_with_the_stream():
    class Array:
        """Of a library that knows no current stream; what torch still has to do is none of its business."""

        def __init__(self, x, stream):
            self.x, self.__cuda_array_interface__ = x, {**x.__cuda_array_interface__, "stream": stream.cuda_stream}

    host = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(1))
    first, late = host[:10_000].cuda(), host[10_000:].cuda()
    graphs = gnnd.build(first, k=16), gnnd.build(late, k=16)
    stream = torch.cuda.Stream()
    for told in (True, False):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            second = torch.zeros_like(late)
            torch.cuda._sleep(200_000_000)  # a tenth of a second, in which it is still zeros
            second += late
        if told:
            merged = gnnd.merge(first, graphs[0], second, graphs[1], stream=stream)
        else:
            merged = gnnd.merge(first, graphs[0], Array(second, stream), graphs[1])
        assert gnnd.eval(merged, host).value >= 0.98


def test_a_stream_of_another_gpu():
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    x, stream = torch.randn(2000, 8, device="cuda:0"), torch.cuda.Stream(device=1)
    with pytest.raises(ValueError, match="a stream of cuda:1 for arrays on cuda:0"):
        gnnd.build(x, k=5, stream=stream.cuda_stream)


def test_the_cuda_array_interface():
    class Array:
        def __init__(self, x, stream):
            self.x = x
            self.__cuda_array_interface__ = {**x.__cuda_array_interface__, "stream": stream}

    x = torch.randn(4000, 16, device="cuda")
    for stream in (None, 1, 2, torch.cuda.Stream().cuda_stream):
        graph = gnnd.build(Array(x, stream), k=8)
        assert gnnd.eval(graph, x).value >= 0.98


def test_merge_append_refine_and_exact():
    x = torch.randn(3000, 16, device="cuda")
    first, second = x[:2000], x[2000:]
    graph = gnnd.build(first, k=16)
    merged = gnnd.merge(first, graph, second, gnnd.build(second, k=16))
    grown = gnnd.append(first, graph, second[:50])
    better = gnnd.refine(x, merged)
    exact = gnnd.build_exact(x, k=16)
    for one, n in ((merged, 3000), (grown, 2050), (better, 3000), (exact, 3000)):
        assert one.n == n
        assert gnnd.eval(one, x[:n], objects=0).value >= 0.98
    assert isinstance(merged.ids, gnnd.DeviceArray)
    assert isinstance(exact.ids, gnnd.DeviceArray)


def test_a_graph_on_a_gpu_is_saved(tmp_path):
    x = torch.randn(2000, 16, device="cuda")
    graph = gnnd.build(x, k=8)
    graph.save(tmp_path / "a.gnnd", base=x.cpu())
    read = gnnd.load(tmp_path / "a.gnnd")
    np.testing.assert_array_equal(read.ids, graph.ids.numpy())
    assert read.measured == graph.measured


MATRICES = {
    "neighbors_graph": {},
    "symmetric_graph": {"values": "metric"},
    "mutual_graph": {"neighbors": 6},
    "jaccard_graph": {},
    "fuzzy_simplicial_set": {},
    "mutual_reachability_graph": {},
}


@pytest.mark.parametrize("allocator", [None, "torch"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_stay_where_the_graph_is(name, allocator):
    graph = gnnd.build(torch.randn(2000, 16, device="cuda"), k=8)
    operation, options = getattr(gnnd.graph, name), MATRICES[name]
    expected = operation(graph.on_host(), **options)  # SciPy's
    held = torch.cuda.memory_allocated()
    csr = operation(graph, allocator=allocator, **options)
    assert isinstance(csr, gnnd.graph.Csr) and csr.shape == (2000, 2000)
    assert all(isinstance(one, gnnd.DeviceArray) and one.device == graph.ids.device for one in csr)
    assert [one.shape for one in csr] == [(2001,), (expected.nnz,), (expected.nnz,)]
    assert [one.dtype for one in csr] == [np.int64, np.int32, np.float32]
    assert torch.from_dlpack(csr.indptr).dtype == torch.int64 and torch.from_dlpack(csr.indptr).shape == (2001,)
    assert (torch.cuda.memory_allocated() - held >= 8 * expected.nnz) == (allocator == "torch")
    for one in (csr.on_host(), operation(graph, device="cpu", **options)):
        np.testing.assert_array_equal(one.indptr, expected.indptr)
        np.testing.assert_array_equal(one.indices, expected.indices)
        np.testing.assert_allclose(one.data, expected.data, atol=3e-5 if name == "fuzzy_simplicial_set" else 0, rtol=0)


def test_a_matrix_becomes_torch_s():
    graph = gnnd.build(torch.randn(2000, 16, device="cuda"), k=8)
    csr = gnnd.graph.symmetric_graph(graph)
    made = csr.to_torch()
    assert made.is_cuda and made.values().data_ptr() == csr.data.__cuda_array_interface__["data"][0]
    assert made.col_indices().data_ptr() == csr.indices.__cuda_array_interface__["data"][0]
    ones, expected = torch.ones(2000, device="cuda"), csr.on_host().sum(1)
    del csr  # the tensor keeps the memory
    np.testing.assert_allclose((made @ ones).cpu(), np.asarray(expected)[:, 0], rtol=1e-5)


def test_labels_of_a_graph_on_a_gpu_come_to_the_host():
    graph = gnnd.build(torch.randn(2000, 16, device="cuda"), k=8)
    here = graph.on_host()
    for name in ("full_rows", "core_distances"):
        operation = getattr(gnnd.graph, name)
        np.testing.assert_array_equal(operation(graph), operation(here))
    assert gnnd.graph.connected_components(graph)[0] == gnnd.graph.connected_components(here)[0]
    for one, other in zip(gnnd.duplicates(graph, 1.5), gnnd.duplicates(here, 1.5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_operations_are_in_order_with_the_stream():
    graph = gnnd.build(torch.randn(20_000, 16, device="cuda"), k=16)
    expected = gnnd.graph.symmetric_graph(graph.on_host())
    ids, distances = torch.from_dlpack(graph.ids), torch.from_dlpack(graph.distances)
    right, stream = distances.clone(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        distances.zero_()
        torch.cuda._sleep(200_000_000)  # a tenth of a second, in which they are still zeros
        distances.copy_(right)
    csr = gnnd.graph.symmetric_graph(graph, stream=stream)
    np.testing.assert_array_equal(csr.data.numpy(), expected.data)
    ids[77, 0] = 77
    with pytest.raises(ValueError, match="77"):
        gnnd.graph.symmetric_graph(graph)


def test_arrays_leave_by_dlpack_only_as_they_are():
    array = gnnd.DeviceArray(0, (3, 4), "f32")
    assert array.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError, match="cuda:0"):
        array.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="no copy"):
        array.__dlpack__(copy=True)
    with pytest.raises(ValueError, match="by a copy only"):
        array.__array__(copy=False)
    seen = torch.from_dlpack(array)
    del array
    seen.fill_(7)  # the consumer keeps the memory
    assert (seen == 7).all()


def test_the_device_that_is_named_must_hold_the_vectors():
    x = torch.randn(2000, 8, device="cuda")
    with pytest.raises(ValueError, match="cannot reach"):
        gnnd.build(x, k=5, device="cpu")
    with pytest.raises(ValueError, match="contiguous|one behind the other"):
        gnnd.build(x.T, k=5)


def test_bad_vectors_are_named():
    x = torch.randn(5000, 8, device="cuda")
    x[77, 3] = float("nan")
    with pytest.raises(ValueError, match="vector 77"):
        gnnd.build(x, k=5)


def test_too_little_memory():
    with pytest.raises(MemoryError):
        gnnd.build(clustered(20_000, 64), k=10, device="cuda", device_memory=1 << 20)


def test_a_thousand_builds_leak_nothing():
    x = torch.randn(3000, 16, device="cuda")

    def builds(count):
        for _ in range(count):
            gnnd.build(x, k=32)

    def grown():
        free = torch.cuda.mem_get_info()[0]
        builds(1000)
        return free - torch.cuda.mem_get_info()[0]

    builds(20)
    # The graphs alone would be 768 MB each time; other processes may take memory meanwhile, not for ever.
    assert any(grown() < 16 << 20 for _ in range(5))


def _build_in_child(queue, x, inherited):
    said = []
    for use in (lambda: gnnd.build(x, k=5, device="cuda"), inherited[0].numpy):
        try:
            use()
        except RuntimeError as error:
            said.append(str(error))
    inherited.clear()  # the memory is the parent's
    queue.put(said)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_told(x):
    graph = gnnd.build(torch.from_numpy(x).cuda(), k=5)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_build_in_child, args=(queue, x, [graph.ids]))
    child.start()
    said = queue.get(timeout=60)
    assert len(said) == 2 and all("before this process was forked" in one for one in said)
    child.join(60)
    assert child.exitcode == 0 and graph.ids.numpy().max() < len(x)
