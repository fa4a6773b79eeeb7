# SPDX-License-Identifier: MIT
"""What others make of a k-NN graph before they work with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._arrays import vectors
from ._graph import Graph, _view_of


def search_links(x: Any, graph: Graph, degree: int = 32, *, entry: int | None = None, threads: int = 0) -> np.ndarray:
    """Links for a greedy search: neighbours, but in as many directions as possible (HNSW's and NSG's rule), and their
    opposites while there is room.

    :param x: the n x d vectors of the graph, in host memory
    :param degree: links of an object, 1 to 4096
    :param entry: an object from which all can be reached then; None: some may be out of reach
    :param threads: 0: all; the result is the same
    :return: n x degree, int32, -1 at the end of rows with fewer
    """
    given = vectors(x)
    if given.device >= 0:
        raise ValueError("the vectors lie on a GPU; links are chosen on the CPU here")
    if not 1 <= degree <= 4096:
        raise ValueError(f"degree = {degree}, allowed are 1 to 4096")
    links = np.empty((graph.n, degree), np.int32)
    _native.search_links(
        given.native, graph.on_host()._parts(), _view_of(links, "i32"), -1 if entry is None else entry, threads
    )
    return links
