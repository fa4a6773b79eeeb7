# SPDX-License-Identifier: MIT
"""Approximate k-NN graphs on NVIDIA GPUs and CPUs, with the recall that they have.

    graph = gnnd.build(x, k=32)           # vectors in: numpy, torch, cupy, jax, ...
    graph.ids, graph.distances            # n x 32, best first
    graph.recall, graph.recall_interval   # as the build has measured it

gnnd.distributed, gnnd.faiss, gnnd.graph, gnnd.hdbscan, gnnd.sklearn and gnnd.umap are there after `import gnnd` alone.
Each imports the library that it is for when it is first used.

GNND and GGM of "Large-Scale Approximate k-NN Graph Construction on GPU" (Wang, Zhao, Zeng, arXiv 2103.15386).
"""

import importlib as _importlib
from typing import TYPE_CHECKING

from ._allocators import Allocator
from ._build import append, build, build_exact, eval, exact_neighbors, merge, parameters, plan, refine  # noqa: A004
from ._device_array import DeviceArray
from ._files import ShardedGraph, build_sharded, load, read_vectors, save
from ._graph import Graph, Recall
from ._native import keep_host_memory, metrics
from ._native import version as __version__
from .graph import duplicates

if TYPE_CHECKING:
    from . import distributed as distributed
    from . import faiss as faiss
    from . import graph as graph
    from . import hdbscan as hdbscan
    from . import sklearn as sklearn
    from . import umap as umap

__all__ = [
    "Allocator",
    "DeviceArray",
    "Graph",
    "Recall",
    "ShardedGraph",
    "append",
    "build",
    "build_exact",
    "build_sharded",
    "duplicates",
    "eval",
    "exact_neighbors",
    "keep_host_memory",
    "load",
    "merge",
    "metrics",
    "parameters",
    "plan",
    "read_vectors",
    "refine",
    "save",
    "__version__",
]

# Not of __all__: `from gnnd import *` needs none of their libraries.
_MODULES = ("distributed", "faiss", "graph", "hdbscan", "sklearn", "umap")

if not TYPE_CHECKING:  # to type checkers it would give every name

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return _importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})
