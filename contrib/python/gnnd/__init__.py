# SPDX-License-Identifier: MIT
"""Approximate k-NN graphs on NVIDIA GPUs and CPUs, with the recall that they have.

    graph = gnnd.build(x, k=32)           # vectors in: numpy, torch, cupy, jax, ...
    graph.ids, graph.distances            # n x 32, best first
    graph.recall, graph.recall_interval   # as the build has measured it

GNND and GGM of "Large-Scale Approximate k-NN Graph Construction on GPU" (Wang, Zhao, Zeng, arXiv 2103.15386).
"""

from ._allocators import Allocator
from ._build import append, build, build_exact, eval, exact_neighbors, merge, parameters, plan, refine  # noqa: A004
from ._device_array import DeviceArray
from ._files import ShardedGraph, build_sharded, load, read_vectors, save
from ._graph import Graph, Recall
from ._native import keep_host_memory, metrics
from ._native import version as __version__
from .graph import duplicates

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
