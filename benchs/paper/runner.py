# SPDX-License-Identifier: MIT
"""Measures the points of an experiment that are not there yet, group by group, and records each."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import time
from itertools import groupby
from pathlib import Path

from datasets import DataError, Library
from drivers import ONE_BY_ONE, TOOLS
from formats import FormatError
from points import Point
from results import FAILED, OK, SKIPPED, Store
from tools import ToolError, Tools


def machine(gpu: bool) -> dict:
    """The machine that the results were measured on."""
    about = {"host_cpu": platform.processor() or "unknown", "cores": os.cpu_count()}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            about["host_cpu"] = line.split(":", 1)[1].strip()
            break
    if gpu:
        try:
            said = subprocess.run(
                ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()[0]
            about["gpu"], about["driver"] = (part.strip() for part in said.split(","))
        except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
            about["gpu"] = "unknown"
    return about


def commit() -> str:
    """Of the sources, as git describes them."""
    done = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def duration(seconds: float) -> str:
    """For people."""
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


class Progress:
    """Says what was done, and about how long the rest takes: by the vectors and repeats of the points that are left,
    at the rate of this experiment so far."""

    def __init__(self, points: list[Point], say):
        self.say, self.total, self.done = say, len(points), 0
        self.left = sum(map(self._weight, points))
        self.spent = self.worked = 0.0

    @staticmethod
    def _weight(point: Point) -> float:
        work = 0 if point.tool == "sharded_plan" else point.data.n * point.k * max(1, point.repeat)
        return work + 1e5  # a command takes a while to start

    def took(self, points: list[Point], seconds: float) -> None:
        """These points are done."""
        weight = sum(map(self._weight, points))
        self.left -= weight
        self.worked += weight
        self.spent += seconds

    def line(self, record: dict) -> None:
        """One point is recorded."""
        self.done += 1
        result = record.get("reason", "")
        if record["status"] == OK:
            recall = record["recall"].get("10")
            result = f"{record['buildtime']:.4g} s" + (f" at {recall:.4f}" if recall is not None else "")
        left = ""
        if self.worked and self.left > 0:
            left = f"; about {duration(self.spent / self.worked * max(0.0, self.left))} left"
        self.say(
            f"[{self.done}/{self.total}] {record['dataset']} {record['n']:,}, {record['series']} "
            f"{record['params']}: {result}{left}"
        )


class Runner:
    """Of one machine and one folder of results."""

    def __init__(self, tools: Tools, library: Library, gpu: bool, retry: bool, say):
        self.tools, self.library, self.retry, self.say = tools, library, retry, say
        self.machine, self.commit = machine(gpu), commit()
        self.absent: dict[str, str] = {}

    def run(self, points: list[Point], store: Store) -> bool:
        """False where a point failed now or before."""
        todo = [point for point in points if not store.is_finished(point.key, self.retry)]
        if len(todo) < len(points):
            self.say(f"{len(points) - len(todo)} of {len(points)} points are there already")
        progress = Progress(todo, self.say)

        def group_of(point: Point) -> tuple:
            return (*point.group, point.key) if point.tool in ONE_BY_ONE else point.group

        order = {group: at for at, group in reversed(list(enumerate(map(group_of, todo))))}
        for _, group in groupby(sorted(todo, key=lambda point: order[group_of(point)]), key=group_of):
            self._group(list(group), store, progress)
        store.keep_only([point.key for point in points])
        return all(store.records[point.key]["status"] != FAILED for point in points)

    def _group(self, points: list[Point], store: Store, progress: Progress) -> None:
        for point in [point for point in points if self._why_not(point)]:
            self._record(point, {"status": SKIPPED, "reason": self._why_not(point)}, store, progress)
            points.remove(point)
        if not points:
            return
        if self.tools.no_time_is_left:
            self._out_of_time(points, store, progress)
            return
        start = time.monotonic()
        try:
            # A prediction is of vectors that need not be there.
            path = Path() if points[0].tool == "sharded_plan" else self.library.path(points[0].data)
            about = {} if points[0].tool == "sharded_plan" else self.library.describe(points[0].data)
            measured = TOOLS[points[0].tool](self.tools, points, path)
        except (ToolError, DataError, FormatError, OSError, LookupError, ValueError) as error:
            if len(points) > 1:  # one of them is to blame
                for point in points:
                    self._group([point], store, progress)
                return
            progress.took(points, time.monotonic() - start)
            reason = str(error) if isinstance(error, (ToolError, DataError, FormatError)) else repr(error)
            self._record(points[0], {"status": FAILED, "reason": reason}, store, progress)
            return
        there = [point for point in points if point.key in measured]
        missing = [point for point in points if point.key not in measured]
        progress.took(there, time.monotonic() - start)
        late = self.tools.late
        for point in there:
            self._record(point, {**about, "status": OK, **measured[point.key]}, store, progress)
        if missing and self.tools.no_time_is_left:
            self._out_of_time(missing, store, progress)
        elif missing:  # the first of them took too long; what follows it was not begun
            progress.took(missing[:1], 0)
            self._record(missing[0], {"status": FAILED, "reason": late}, store, progress)
            self._group(missing[1:], store, progress)

    def _out_of_time(self, points: list[Point], store: Store, progress: Progress) -> None:
        for point in points:
            self._record(point, {"status": SKIPPED, "reason": "no time was left (--seconds)"}, store, progress)

    def _why_not(self, point: Point) -> str:
        if point.why_not:
            return point.why_not
        if point.tool not in self.absent:
            self.absent[point.tool] = self.tools.missing(point.tool)
        return self.absent[point.tool]

    def _record(self, point: Point, found: dict, store: Store, progress: Progress) -> None:
        graph = found.pop("graph", None)
        seed = dict(part.split("=", 1) for part in point.configuration.split(",") if part.count("=") == 1).get("seed")
        # Tools that are not told take all of them.
        threads = found.pop("threads", 0) or point.threads or len(os.sched_getaffinity(0))
        record = {
            "experiment": store.experiment,
            "key": point.key,
            "series": point.series,
            "tool": point.tool,
            "dataset": point.data.name,
            "n": point.data.n,
            "metric": point.data.metric,
            "k": point.k,
            "params": point.configuration,
            "about": point.about,
            "seed": int(seed or 1234),
            "asked_threads": point.threads,
            "threads": threads,
            "commit": self.commit,
            "recall": {},
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **self.machine,
            **found,
        }
        store.add(record, graph)
        progress.line(record)
