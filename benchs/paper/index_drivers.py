# SPDX-License-Identifier: MIT
"""The drivers of what makes and searches graph indexes, as drivers.py has those of graphs."""

from __future__ import annotations

import sys
from pathlib import Path

from points import Point
from results import timed
from tools import CAGRA, Tools, nothing_about


def index_bench(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """Graph indexes from vectors, searched beam by beam by all cores; those with GNND are made where tools.device says.
    The last vectors of the file are the queries."""
    first = points[0]
    command = [
        tools.path("index_bench"),
        path,
        "search",
        "--metric",
        first.data.metric,
        "-k",
        first.k,
        "--queries",
        first.queries,
        "--repeat",
        first.repeat,
        "--threads",
        first.threads,
        *first.options,
    ]
    for point in points:
        command += ["--index", point.configuration]
    lines = tools.call(command)
    found = {}
    for point in points:
        mine = [line for line in lines if line["index"] == point.configuration]
        if not mine:
            nothing_about(tools, point.tool, point.configuration)
            continue
        found[point.key] = {
            **timed([mine[0]["build_seconds"]]),
            **tools.where(tools.device if point.configuration.startswith("GNND") else "cpu"),
            "threads": mine[0]["threads"],
            "peak_bytes": mine[0]["peak_bytes"],
            "faiss": tools.faiss,
            "queries": first.queries,
            "build_cpu_seconds": mine[0]["build_cpu_seconds"],
            "recall": {str(point.k): max(line["recall"] for line in mine)},
            "recall_source": f"{first.queries} held-out queries against FAISS flat search, the widest beam",
            "curve": [{name: line[name] for name in ("beam", "recall", "qps", "qps_a_core")} for line in mine],
        }
    return found


def cagra(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """FAISS's GpuIndexCagra, of GNND's graph and as FAISS makes it, searched on the GPU. The configuration is what the
    script tells of an index: links, from, and k of GNND's graph."""
    first = points[0]
    wanted = {point.key: dict(part.split("=") for part in point.configuration.split(",")) for point in points}

    def asked(name: str) -> str:
        return ",".join(dict.fromkeys(what[name] for what in wanted.values() if name in what))

    command = [sys.executable, CAGRA, path, "--rows", first.data.n, "--queries", first.queries, *first.options]
    command += ["--degrees", asked("links"), *(["-k", asked("k")] if asked("k") else [])]
    lines = tools.call(command)
    version = tools.text([sys.executable, "-c", "import faiss; print(faiss.__version__)"]).strip()
    found = {}
    for point in points:
        what = wanted[point.key]
        mine = [line for line in lines if all(str(line.get(name)) == value for name, value in what.items())]
        if not mine:
            nothing_about(tools, point.tool, point.configuration)
            continue
        searches = mine[0]["searches"]
        found[point.key] = {
            **timed([mine[0]["ready_seconds"]]),
            "device": tools.device,
            "faiss": version,
            "queries": first.queries,
            "recall": {str(point.k): max(line["recall@10"] for line in searches)},
            "recall_source": f"{first.queries} held-out queries against FAISS flat search, the widest beam",
            "curve": [
                {"beam": line["itopk_size"], "recall": line["recall@10"], "qps": line["queries_per_second"]}
                for line in searches
            ],
        }
    return found
