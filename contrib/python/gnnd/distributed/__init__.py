# SPDX-License-Identifier: MIT
"""Graphs in shards that several processes build, on one machine or on many.

    gnnd.distributed.start("base.u8bin", "/shared/graph", shards=8, k=32)
    gnnd.distributed.work("/shared/graph")     # in any number of processes: `python -m gnnd worker /shared/graph`
    gnnd.load("/shared/graph")

    gnnd.distributed.build("base.u8bin", "/shared/graph", shards=8, client=dask.distributed.Client(address))

With ``plan="near"`` only those pairs of shards are merged that are near each other. The truth is what lies in the
folder: nothing else need survive for a build to go on.
"""

from ._dask import build
from ._worker import fetch, start, work

__all__ = ["build", "fetch", "start", "work"]
