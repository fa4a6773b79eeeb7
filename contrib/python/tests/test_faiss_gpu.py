# SPDX-License-Identifier: MIT
"""Vectors of FAISS's flat indexes on a GPU: by a stand-in everywhere, by FAISS's own where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest

faiss = pytest.importorskip("faiss")

import gnnd.faiss  # noqa: E402

N, D = 1200, 12
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Resources:
    """Of a GPU: what was asked of them, and how much of the vectors was there by then."""

    def __init__(self, copy) -> None:
        self.copy, self.synchronized = copy, []

    def syncDefaultStream(self, gpu: int) -> None:  # noqa: N802
        self.copy()
        self.synchronized.append(gpu)


class GpuIndexFlat(faiss.IndexFlat):
    """Stands in for FAISS's: what it copies to a pointer is there when its stream was waited for."""

    # FAISS's classes take no attributes that their class does not know.
    gpu, resources, reconstructed = 0, (), ()

    def __init__(self, x: np.ndarray, gpu: int) -> None:
        super().__init__(x.shape[1], faiss.METRIC_L2)
        self.add(x)
        self.gpu, self.resources, self.reconstructed = gpu, [], []

    def getDevice(self) -> int:  # noqa: N802
        return self.gpu

    def getResources(self) -> Resources:  # noqa: N802
        return self.resources[-1]

    def reconstruct_n_c(self, first: int, count: int, out) -> None:
        self.resources.append(Resources(lambda: faiss.IndexFlat.reconstruct_n_c(self, first, count, out)))

    def reconstruct_n(self, first: int, count: int) -> np.ndarray:
        self.reconstructed.append(count)
        return faiss.rev_swig_ptr(self.get_xb(), self.ntotal * self.d).reshape(-1, self.d)[first : first + count].copy()


@pytest.fixture
def gpus(monkeypatch):
    """Three GPUs, whose memory is the host's, and is full of NaN; where room is False there is none."""

    class OnGpu:
        room = True

        def __init__(self, gpu: int, shape: tuple[int, int], dtype: str) -> None:
            if not self.room:
                raise MemoryError
            self.gpu, self.array = gpu, np.full(shape, np.nan, np.float32)
            assert dtype == "f32"

        def _view(self):
            return gnnd._native.Array(self.array, self.array.ctypes.data, *self.array.shape, 0, "f32")

        def __array__(self, dtype=None, copy=None):
            return self.array

        def __len__(self) -> int:
            return len(self.array)

    monkeypatch.setattr(gnnd._native, "device_count", lambda: (3, ""))
    monkeypatch.setattr(gnnd._faiss_vectors, "DeviceArray", OnGpu)
    downcast = faiss.downcast_index
    monkeypatch.setattr(faiss, "downcast_index", lambda one: one if type(one) is GpuIndexFlat else downcast(one))
    return OnGpu


def test_vectors_of_a_flat_index_on_a_gpu_stay_there(gpus, x: np.ndarray) -> None:
    index = GpuIndexFlat(x, 2)
    found = gnnd.faiss.vectors(index)
    assert type(found) is gpus and found.gpu == 2
    np.testing.assert_array_equal(found.array, x)
    assert index.resources[0].synchronized == [2] and index.reconstructed == []
    np.testing.assert_array_equal(gnnd.faiss.ids(index), np.arange(N))
    graph = gnnd.build(x, 20)
    assert (gnnd.faiss.to_nsg(index, graph).search(x[:100], 1)[0] == 0).mean() > 0.97


@pytest.mark.parametrize("why", ["no room", "no such GPU"])
def test_or_come_to_the_host(gpus, monkeypatch, x: np.ndarray, why: str) -> None:
    monkeypatch.setattr(gpus, "room", why != "no room")
    index = GpuIndexFlat(x, 3 if why == "no such GPU" else 0)
    np.testing.assert_array_equal(gnnd.faiss.vectors(index), x)
    assert index.resources == [] and index.reconstructed == [N]


def test_vectors_of_faiss_s_own_index_on_a_gpu(x: np.ndarray) -> None:
    if not hasattr(faiss, "GpuIndexFlat") or faiss.get_num_gpus() == 0 or gnnd._native.device_count()[0] == 0:
        pytest.skip("needs a FAISS and a gnnd with CUDA, and a GPU")
    for half in (False, True):
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = half
        index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), D, config)
        index.add(x)
        found = gnnd.faiss.vectors(index)
        assert isinstance(found, gnnd.DeviceArray)
        np.testing.assert_allclose(found.numpy(), x, rtol=1e-3 if half else 0)
        graph = gnnd.build(found, 20)
        assert isinstance(graph.ids, gnnd.DeviceArray) and gnnd.eval(graph, found).value >= 0.98
