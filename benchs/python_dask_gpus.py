# SPDX-License-Identifier: MIT
"""One Dask worker for each GPU of a machine against one worker: seconds of the same build.

A set is a file of uint8 x 128: points of 65,536 clusters in 16 dimensions, widened to 128, made by blocks of rows. Sets
follow one another as long as the time allows. A small build of both, before the clock, starts workers and GPUs. Base
and graph lie in one folder: in /dev/shm where it is large enough. Each task is told when it is done, with the seconds
of its parts by the worker's log; a build that takes longer than --limit ends all.

    python benchs/python_dask_gpus.py [--rows 4000000 20000000 100000000] [--gpus 2] [--shards 4] [--seconds 280]
        [--limit 120] [--fill 0] [--device cuda]

--fill GB: so much memory is touched before the largest set. A virtual machine that is given its memory when it first
uses it would be measured otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Client, Nanny, Scheduler, SpecCluster

import gnnd
import gnnd.distributed

D, CLUSTERS, WITHIN, BLOCK = 128, 65_536, 16, 1_000_000
ROOM = 32  # bytes on disk for each of k neighbours of a row: lists up to three times, and local graphs


def make_base(path: Path, n: int, on_gpu: bool) -> None:
    """A u8bin file, by torch where it is to be on a GPU."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(CLUSTERS, WITHIN)).astype(np.float32) * 2
    wide = random.normal(size=(WITHIN, D)).astype(np.float32) * 10
    with open(path, "wb") as file:
        file.write(struct.pack("<ii", n, D))
        for begin in range(0, n, BLOCK):
            count = min(BLOCK, n - begin)
            if on_gpu:
                import torch

                torch.manual_seed(begin)
                at = torch.randint(CLUSTERS, (count,), device="cuda")
                low = torch.from_numpy(centres).cuda()[at] + torch.randn(count, WITHIN, device="cuda")
                x = low @ torch.from_numpy(wide).cuda() + 128 + torch.randn(count, D, device="cuda") * 2
                x.clamp(0, 255).byte().cpu().numpy().tofile(file)
            else:
                low = centres[random.integers(CLUSTERS, size=count)] + random.normal(size=(count, WITHIN))
                x = low @ wide + 128 + random.normal(size=(count, D)) * 2
                np.clip(x, 0, 255).astype(np.uint8).tofile(file)
    if on_gpu:
        torch.cuda.empty_cache()


def cluster_of(gpus: list[str], device: str) -> SpecCluster:
    """A worker for each of the GPUs, which sees no other; of the CPU so many, without a resource."""
    options: list[dict[str, Any]] = [{} for _ in gpus]
    if device != "cpu":
        options = [{"resources": {"GPU": 1}, "env": {"CUDA_VISIBLE_DEVICES": gpu}} for gpu in gpus]
    here = {"host": "127.0.0.1", "dashboard": False}
    all_memory = {"memory_limit": 0}  # or Dask gives each its part of what there is by cores
    workers = {
        f"gpu{i}": {"cls": Nanny, "options": {**here, **all_memory, "nthreads": 1, "silence_logs": 40, **one}}
        for i, one in enumerate(options)
    }
    return SpecCluster(workers, {"cls": Scheduler, "options": here}, silence_logs=40)


FILL = """
import mmap, sys
memory = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(memory), 4096):
    memory[at] = 1
print(flush=True)
sys.stdin.read()
"""


def fill_memory(size: float) -> None:
    """By a process for each processor, all of which hold it at the same time."""
    count = len(os.sched_getaffinity(0))
    begin, pipes = time.perf_counter(), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    fillers = [subprocess.Popen([sys.executable, "-c", FILL, str(int(size / count))], **pipes) for _ in range(count)]
    for filler in fillers:
        filler.stdout.readline()
    for filler in fillers:
        filler.communicate()
    print(f"{size / 1e9:.0f} GB of memory touched in {time.perf_counter() - begin:.1f} s", flush=True)


def tell_tasks() -> None:
    """On a worker: its log, with the seconds of each task, to where the benchmark's output goes."""
    logging.basicConfig(level=logging.INFO, format=f"{os.getpid()} %(relativeCreated)d ms: %(message)s", force=True)
    logging.getLogger("distributed").setLevel(logging.ERROR)


def out_of_time(*_: object) -> None:
    raise TimeoutError


def build(client: Client, base: Path, folder: Path, given: argparse.Namespace, left: float) -> tuple[float, ...]:
    """Seconds, GB that were moved, and the recall. :raises TimeoutError: not done within the limit or what is left"""
    work, told = folder / "work", [{"bytes": 0}]

    def tell(now: dict[str, Any]) -> None:
        told.append(now)
        if len(told) % 4 == 0:
            print(
                f"  {now['tasks_done']}/{now['tasks']} in {now['seconds']:.1f} s, {now['bytes'] / 1e9:.0f} GB",
                flush=True,
            )

    signal.setitimer(signal.ITIMER_REAL, max(1.0, min(given.limit, left)))
    began = time.perf_counter()
    graph = gnnd.distributed.build(
        base,
        work,
        given.k,
        shards=given.shards,
        client=client,
        device=given.device,
        threads=given.threads,
        progress=tell,
    )
    seconds = time.perf_counter() - began
    signal.setitimer(signal.ITIMER_REAL, 0)
    recall = graph.recall if graph is not None and graph.recall is not None else float("nan")
    del graph
    shutil.rmtree(work)
    return seconds, told[-1]["bytes"] / 1e9, recall


def end_now(folder: Path, code: int) -> None:
    """Whatever workers do: Dask would wait for their tasks."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[4_000_000, 20_000_000, 100_000_000])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=280, help="in which all is to end")
    parser.add_argument("--limit", type=float, default=120, help="seconds of one build")
    parser.add_argument("--fill", type=float, default=0, help="GB of memory that are touched before the largest set")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of each worker; 0: its part of the machine's")
    for name, standard in (("shards", 0), ("k", 32)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--work", default=None, help="folder; one in /dev/shm or of the system's temporary ones")
    given = parser.parse_args()
    given.threads = given.threads or max(1, len(os.sched_getaffinity(0)) // given.gpus)
    given.shards = given.shards or 2 * given.gpus  # the fewest that keep all busy move the least
    started = time.perf_counter()
    signal.signal(signal.SIGTERM, out_of_time)  # what is done is told, and the folder deleted
    signal.signal(signal.SIGALRM, out_of_time)
    large = shutil.disk_usage("/dev/shm").free > 20_000_000 * (D + ROOM * given.k)
    folder = Path(tempfile.mkdtemp(dir=given.work or ("/dev/shm" if large else None)))
    print(
        f"in {folder}, {shutil.disk_usage(folder).free / 1e9:.0f} GB free; {given.threads} threads a worker", flush=True
    )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = (visible.split(",") if visible else [str(i) for i in range(given.gpus)])[: given.gpus]
    lines, expected = ["| rows | workers | seconds | GB moved | recall | times |", "|---|---|---|---|---|---|"], 0.0
    before, code = 0, 0

    def left() -> float:
        return given.seconds - (time.perf_counter() - started)

    try:
        many, single = cluster_of(gpus, given.device), cluster_of(gpus[:1], given.device)
        by_many, by_one = Client(many), Client(single)
        base = folder / "base.u8bin"
        make_base(base, given.rows[0] // 20, False)
        for client in (by_many, by_one):
            client.run(tell_tasks)
            build(client, base, folder, given, left())
        print(f"started in {time.perf_counter() - started:.1f} s", flush=True)
        for n in given.rows:
            free = shutil.disk_usage(folder).free
            # Both builds of the size before, times how much larger this one is.
            if before and expected * n / before * 0.9 > left():
                print(f"{n} rows would not fit the {left():.0f} s that are left")
                break
            if n * (D + ROOM * given.k) > free:
                print(f"{n} rows would not fit the {free / 1e9:.0f} GB that are free")
                break
            signal.setitimer(signal.ITIMER_REAL, max(1.0, left()))
            if given.fill and n == max(given.rows):
                fill_memory(given.fill * 1e9)
            begin = time.perf_counter()
            make_base(base, n, given.device != "cpu")
            print(f"{n} rows made in {time.perf_counter() - begin:.1f} s", flush=True)
            one = 0.0
            for workers, client in ((1, by_one), (len(gpus), by_many)):
                seconds, moved, recall = build(client, base, folder, given, left())
                one = one or seconds
                times = f"{one / seconds:.2f}"
                lines.append(f"| {n} | {workers} | {seconds:.2f} | {moved:.1f} | {recall:.4f} | {times} |")
                print(lines[-1], flush=True)
            before, expected = n, time.perf_counter() - begin
    except TimeoutError:
        print("out of time", flush=True)
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    print(f"\n{time.perf_counter() - started:.0f} s in all\n" + "\n".join(lines), flush=True)
    end_now(folder, code)


if __name__ == "__main__":
    main()
