# SPDX-License-Identifier: MIT
"""The vectors that a FAISS index holds."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from . import _native
from ._device_array import DeviceArray

_METRICS = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip", faiss.METRIC_L1: "l1", faiss.METRIC_Linf: "linf"}
_PLAIN = (faiss.IndexFlat, faiss.IndexFlatL2, faiss.IndexFlatIP, faiss.IndexFlat1D)


def vectors(index: faiss.Index) -> np.ndarray | DeviceArray:
    """The vectors of an index, in the order of its rows; of inverted lists in that of their ids.

    Those of a flat index are a read-only view, which keeps the index: nothing may be added to it or removed from it
    while the view is used. All others are decoded into a new array. Maps of ids, transforms, refinements and graph
    indexes are looked through; behind a transform the vectors are the transformed ones.

    Those of a ``GpuIndexFlat`` stay on its GPU, as a copy: FAISS shows Python no pointer to its own. Where that GPU has
    no room for one, or this gnnd was built without CUDA, they come to the host.

    :return: n x d, float32
    :raises ValueError: for indexes that hold no vectors, or cannot give them back
    """
    return _read(index)[0]


def ids(index: faiss.Index) -> np.ndarray:
    """The ids under which a search of the index reports the rows of :func:`vectors`: n, int64."""
    rows, given = _read(index)
    return np.arange(len(rows), dtype=np.int64) if given is None else given


def metric(index: faiss.Index) -> str:
    """The name that gnnd has for the index's metric. :raises ValueError: where it has none"""
    number = _storage(index)[0].metric_type
    if number not in _METRICS:
        raise ValueError(
            f"FAISS metric number {number} has no counterpart here; there are {', '.join(_METRICS.values())}"
        )
    return _METRICS[number]


class _View:
    """The memory of a flat index, which numpy's array of it keeps."""

    def __init__(self, owner: Any, flat: faiss.IndexFlat) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": (flat.ntotal, flat.d),
            "data": (int(flat.get_xb()), True),
        }


def _storage(index: faiss.Index) -> tuple[faiss.Index, np.ndarray | None]:
    """The index that holds the vectors, and the ids that maps around it give them."""
    if not isinstance(index, faiss.Index):
        raise TypeError(f"a faiss.Index is needed, not {type(index).__name__}")
    maps: list[np.ndarray] = []
    while True:
        index = faiss.downcast_index(index)
        if isinstance(index, (faiss.IndexIDMap, faiss.IndexIDMap2)):
            maps.append(faiss.vector_to_array(index.id_map))
            inner = index.index
        elif isinstance(index, faiss.IndexPreTransform):
            inner = index.index
        elif isinstance(index, faiss.IndexRefine):
            inner = index.refine_index
        elif isinstance(index, (faiss.IndexHNSW, faiss.IndexNSG, faiss.IndexNNDescent)):
            inner = index.storage
        else:
            break
        if inner is None:
            raise ValueError(f"{type(index).__name__} has no index inside that holds vectors")
        index = inner
    mapped = None
    for one in reversed(maps):
        mapped = one if mapped is None else one[mapped]
    return index, mapped


def _read(given: faiss.Index) -> tuple[np.ndarray | DeviceArray, np.ndarray | None]:
    index, mapped = _storage(given)
    name = type(index).__name__
    if not index.is_trained or index.ntotal == 0:
        raise ValueError(f"{name} is {'empty' if index.is_trained else 'not trained'} and holds no vectors")
    if type(index) in _PLAIN:
        return np.asarray(_View(given, index)), mapped
    if name.startswith("GpuIndexFlat") and (copy := _on_its_gpu(index)) is not None:
        return copy, mapped
    try:
        if isinstance(index, faiss.IndexIVF):
            x, own = _inverted_lists(index)
            return x, own if mapped is None else mapped[own]
        # An index that cannot reconstruct says so at the first row. Only then may all be asked for: FAISS decodes them
        # in parallel, and what is thrown there ends the process.
        first = index.reconstruct(0)
        if isinstance(index, faiss.IndexFlatCodes) or name.startswith("Gpu"):
            return index.reconstruct_n(0, index.ntotal), mapped
        x = np.empty((index.ntotal, index.d), np.float32)
        x[0] = first
        for row in range(1, index.ntotal):
            index.reconstruct(row, x[row])
        return x, mapped
    except RuntimeError as error:
        raise ValueError(f"{name} cannot reconstruct its vectors: {error}") from error


def _on_its_gpu(index: Any) -> DeviceArray | None:
    """The vectors of a GpuIndexFlat, copied by FAISS within the memory of its GPU; None where that cannot be."""
    gpu = index.getDevice()
    if gpu >= _native.device_count()[0]:
        return None
    try:
        x = DeviceArray(gpu, (index.ntotal, index.d), "f32")
    except MemoryError:
        return None
    index.reconstruct_n_c(0, index.ntotal, faiss.cast_integer_to_float_ptr(x._view().pointer))
    index.getResources().syncDefaultStream(gpu)
    return x


def _inverted_lists(index: faiss.IndexIVF) -> tuple[np.ndarray, np.ndarray]:
    lists = faiss.downcast_InvertedLists(index.invlists)
    sizes = [lists.list_size(one) for one in range(lists.nlist)]
    if sum(sizes) == 0:
        raise ValueError(f"the inverted lists of {type(index).__name__} are empty")
    x, numbers = np.empty((sum(sizes), index.d), np.float32), np.empty(sum(sizes), np.int64)
    plain = type(index) is faiss.IndexIVFFlat
    begin = 0
    for one, size in enumerate(sizes):
        if size == 0:
            continue
        end = begin + size
        numbers[begin:end] = faiss.rev_swig_ptr(lists.get_ids(one), size)
        if plain:
            codes = faiss.rev_swig_ptr(lists.get_codes(one), size * lists.code_size)
            x[begin:end] = codes.view(np.float32).reshape(size, index.d)
        else:
            for offset in range(size):
                index.reconstruct_from_offset(one, offset, faiss.swig_ptr(x[begin + offset]))
        begin = end
    order = np.argsort(numbers, kind="stable")
    return x[order], numbers[order]
