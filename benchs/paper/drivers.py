# SPDX-License-Identifier: MIT
"""The tools that measure points: the command line of each, and what its lines say. Nothing is measured here.

A driver returns what was measured, by point. Only where a command was ended since it took too long (Tools.late) may
points be missing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import formats
from index_drivers import cagra, index_bench
from points import Point
from results import at_values, recalls, timed
from tools import PEERS, REPOSITORY, ToolError, Tools, nothing_about


def _common(line: dict) -> dict:
    names = (
        "phi",
        "iterations",
        "stop",
        "threads",
        "peak_bytes",
        "commit",
        "faiss",
        "timing",
        "measured",
        "device",
        "cuda",
        "driver_cuda",
        "p",
        "list_size",
        "phi_graph",
        "iteration_seconds",
        "distances",
        "machine",
    )
    # A program that was built in another folder does not know its commit, and the runner's own stands.
    return {name: line[name] for name in names if line.get(name) not in (None, "unknown")}


def _command(program: Path, points: list[Point], path: Path) -> list:
    """The benchmarks' command line for points of one group, each configuration once."""
    first = points[0]
    texts = list(dict.fromkeys(point.configuration for point in points))
    options = {"-k": first.k, "--metric": first.data.metric, "--repeat": first.repeat, "--queries": first.queries}
    return [program, path, *texts, *(part for option in options.items() for part in option)]


def build_bench(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """Whole builds and merges on the CPU, or with `device=cuda:0` in a configuration."""
    first, graphs = points[0], tools.scratch / "graphs"
    command = _command(tools.path("build_bench"), points, path)
    # Whoever counts threads means the CPU. So does FAISS's NNDescent, which else is built once more before it is timed.
    on_cpu = first.threads or all("method=nndescent" in point.configuration for point in points)
    device = "cpu" if on_cpu else tools.device
    command += ["--device", device, "--threads", first.threads, "--at", ",".join(map(str, at_values(first.k)))]
    if tools.keep_graphs:
        command += ["--graphs", graphs]
    try:
        lines = tools.call(command, first.threads)
        found = {}
        for point in points:
            mine = [line for line in lines if line["configuration"] == point.configuration]
            if not mine:
                nothing_about(tools, point.tool, point.configuration)
                continue
            last = mine[-1]
            found[point.key] = {
                **tools.where(last.get("device", "cpu")),  # merges by FAISS's indexes, on the CPU, tell none
                **_common(last),
                **timed([line["seconds"] for line in mine]),
                "recall": recalls(last, point.k),
                "recall_source": f"{last['recall_objects']} objects against FAISS flat search",
            }
            if "graph" in last:
                found[point.key]["graph"] = formats.read_graph(Path(last["graph"]))
        return found
    finally:
        shutil.rmtree(graphs, ignore_errors=True)


def gpu_bench(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """Whole builds and merges on a GPU, vectors and graph in its memory: the median after a warm-up."""
    first = points[0]
    lines = tools.call(_command(tools.path("gpu_bench"), points, path))
    found = {}
    for point in points:
        line = next((line for line in lines if line["configuration"] == point.configuration), None)
        if line is None:
            nothing_about(tools, point.tool, point.configuration)
            continue
        least, most = line["seconds_least"], line["seconds_most"]
        found[point.key] = {
            **_common(line),
            **timed([least, line["seconds"], most]),
            "repeats": first.repeat,
            "faiss": tools.faiss,  # of these programs; nothing of it is in the build
            "peak_bytes": line["allocated_bytes"],
            "recall": recalls(line, point.k),
            "where": "device",
            "recall_source": f"{line['recall_objects']} objects against exact_neighbors() on the host",
        }
    return found


def gnnd(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """`gnnd build` with a point's options, file to file, then `gnnd eval`; with --shards in a folder."""
    program, device = tools.path("gnnd"), ["--device", tools.device]
    found = {}
    for point in points:
        seconds, built = [], {}
        for _ in range(point.repeat):
            options = point.configuration.split()
            in_shards = "--shards" in options
            graph = tools.scratch / ("graph" if in_shards else "graph.gnnd")
            shutil.rmtree(graph, ignore_errors=True) if in_shards else graph.unlink(missing_ok=True)
            of_gnnd = "--method" not in options
            threads = ["--threads", str(point.threads)] if of_gnnd else []
            where = device if not {"nndescent"} & set(options) else []
            lines = tools.call(
                [
                    program,
                    "build",
                    path,
                    "-k",
                    point.k,
                    "--metric",
                    point.data.metric,
                    *where,
                    "--work" if in_shards else "-o",
                    graph,
                    "--json",
                    "-q",
                    *threads,
                    *options,
                ],
                point.threads,
            )
            if tools.late:
                return found
            built = lines[-1]
            seconds.append(built["seconds"])
        lines = tools.call([program, "eval", graph, path, "-k", point.k, "--queries", point.queries, "--json", *device])
        if tools.late:
            return found
        judged = lines[-1]
        names = (
            "shards",
            "tasks",
            "bytes_written",
            "bytes_read",
            "peak_host_bytes",
            "timing",
            "stop",
            "threads",
            "device",
        )
        found[point.key] = {
            **timed(seconds),
            **tools.where(tools.device if where else "cpu"),
            **{name: built[name] for name in names if name in built},
            "recall": {**judged["recalls"], "k": judged["recall"]},
            "peak_bytes": built["peak_memory_bytes"],
            "faiss": tools.faiss,
            "recall_source": f"{judged['queries']} objects against FAISS flat search",
        }
        if tools.keep_graphs and not in_shards:
            found[point.key]["graph"] = formats.read_graph(graph)
        shutil.rmtree(graph, ignore_errors=True)
        graph.unlink(missing_ok=True)
    return found


def sharded_plan(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """The time that a build in shards is predicted to take, at the rates that the configuration gives, of the fastest
    number of shards that fits."""
    found = {}
    for point in points:
        table = tools.text([tools.path("sharded_plan"), "-k", point.k, *point.configuration.split()])
        rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.splitlines()[2:]]
        fitting = [row for row in rows if len(row) > 3]
        if not fitting:
            raise ToolError("sharded_plan: no number of shards fits the device")
        best = min(fitting, key=lambda row: float(row[3]))
        found[point.key] = {
            **timed([float(best[3])]),
            "predicted": True,
            "shards": int(best[0]),
            "recall": {},
            "recall_source": "none: predicted, not run",
            "n": point.about["n"],
        }
    return found


def peer(tools: Tools, points: list[Point], path: Path) -> dict[str, dict]:
    """Peers in scripts of their own, which print lines like build_bench's."""
    found = {}
    for point in points:
        script = REPOSITORY / "benchs" / PEERS[point.tool].script
        lines = tools.call(
            [
                sys.executable,
                script,
                path,
                "-k",
                point.k,
                "--metric",
                point.data.metric,
                "--repeat",
                point.repeat,
                "--queries",
                min(point.queries, 2000),
                "--threads",
                point.threads or -1,
                *point.configuration.split(),
            ],
            point.threads,
        )
        if not lines:
            nothing_about(tools, point.tool, point.configuration)
            return found
        last = lines[-1]
        found[point.key] = {
            **_common(last),
            **timed([line["seconds"] for line in lines]),
            "recall": recalls(last, point.k),
            "version": last["version"],
            "recall_source": f"{last['recall_objects']} objects against all pairs by numpy",
        }
    return found


# These are given one point a command: it is recorded as soon as it is measured.
ONE_BY_ONE = ("gnnd", "sharded_plan", *PEERS)
TOOLS: dict[str, Callable[[Tools, list[Point], Path], dict[str, dict]]] = {
    "build_bench": build_bench,
    "gpu_bench": gpu_bench,
    "index_bench": index_bench,
    "cagra": cagra,
    "gnnd": gnnd,
    "sharded_plan": sharded_plan,
    **{name: peer for name in PEERS},
}
