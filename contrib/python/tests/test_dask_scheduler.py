# SPDX-License-Identifier: MIT
"""Builds on Dask distributed whose scheduler is killed. GNND_TEST_KILLS=5 kills more of those that are alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import gnnd.distributed
from shards import PATIENCE, K, check_finished, make_base, make_flat_base

distributed = pytest.importorskip("distributed")
ClosedClientError = distributed.client.ClosedClientError
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.disturbed]
plans = pytest.mark.parametrize("plan, times", [("all", 5), ("near", 1)])
KILLS = int(os.environ.get("GNND_TEST_KILLS", "1"))


def begin(folder: Path, plan: str) -> tuple[Path, Path]:
    return (make_base if plan == "all" else make_flat_base)(folder, 3000), folder / "work"


@plans
def test_a_cluster_that_is_killed(tmp_path, plan, times):
    """The scheduler with all that it knew, its workers and the client. Another one on the same folder goes on, until
    it is killed, too."""
    base, work = begin(tmp_path, plan)
    program = """
import sys, gnnd.distributed
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        words = {"shards": 12, "plan": sys.argv[3], "threads": 1, "lease_seconds": 0.6}
        gnnd.distributed.build(sys.argv[1], sys.argv[2], 8, client=client, **words)
"""
    (tmp_path / "build.py").write_text(program)
    command = [sys.executable, tmp_path / "build.py", base, work, plan]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)

    def done() -> set[str]:
        return {path.name for path in (work / "done").glob("*")}

    killed = 0
    for _ in range(times):
        first, before = start(), done()
        while first.poll() is None and len(done() - before) < 8:
            time.sleep(0.005)
        if first.poll() is not None:  # it was through before the test came to look
            assert first.returncode == 0
            break
        os.killpg(first.pid, signal.SIGKILL)  # the scheduler, the client and the workers
        first.wait()
        killed += 1
    assert killed
    assert start().wait(timeout=PATIENCE) == 0
    check_finished(work, base)


@contextmanager
def scheduler_and_workers(folder: Path) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """Processes of their own, the scheduler first, and the file that tells where it is."""
    file = folder / "scheduler.json"
    where = "--scheduler-file", file, "--no-dashboard"

    def start(*words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, *where]
        return subprocess.Popen(list(map(str, command)), cwd=folder, stderr=subprocess.DEVNULL)

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", 0)]
    try:
        worker = "worker", "--nthreads", 1, "--no-nanny", "--local-directory", folder, "--death-timeout", 30
        processes += [start(*worker) for _ in range(2)]
        yield file, processes
    finally:
        for one in processes:
            one.kill()
            one.wait()


def client_of(file: Path) -> distributed.Client:
    """It waits a short time for its scheduler to come back, and no longer for it to be there: it tries more often."""
    where = {"scheduler_file": str(file), "timeout": 4}
    for _ in range(14):
        with suppress(OSError):
            return distributed.Client(**where)
    return distributed.Client(**where)


def killer_of(process: subprocess.Popen[bytes], tasks: int) -> Callable[[dict[str, Any]], None]:
    """A build's progress, which kills the process when so many tasks were done after the first."""
    done: list[int] = []

    def progress(record: dict[str, Any]) -> None:
        done.append(record["tasks_done"])
        if done[-1] >= done[0] + tasks:
            process.kill()

    return progress


@pytest.mark.parametrize("plan, times", [("all", min(KILLS, 5)), ("near", 1)])
def test_a_scheduler_that_is_killed_alone(tmp_path, plan, times):
    """The caller has an error, and the workers end by themselves. Others go on under another scheduler."""
    base, work = begin(tmp_path, plan)

    def build(client, progress=None):
        words = {"shards": 12, "plan": plan, "threads": 1, "lease_seconds": 0.6}
        return gnnd.distributed.build(base, work, K, client=client, progress=progress, **words)

    for turn in range(times):
        folder = tmp_path / str(turn)
        folder.mkdir()
        with scheduler_and_workers(folder) as (file, (scheduler, *workers)):
            with client_of(file) as client, pytest.raises((CancelledError, OSError, ClosedClientError, RuntimeError)):
                build(client, killer_of(scheduler, 8))
            assert scheduler.wait(timeout=PATIENCE) == -signal.SIGKILL
            for one in workers:
                one.wait(timeout=PATIENCE)
        assert not (work / "manifest.json").exists()
    with scheduler_and_workers(tmp_path) as (file, _), client_of(file) as client:
        assert build(client).n == 3000
    check_finished(work, base)
