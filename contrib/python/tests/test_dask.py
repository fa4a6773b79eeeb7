# SPDX-License-Identifier: MIT
"""Builds on Dask distributed: several worker processes on the loopback."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
import uuid

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from gnnd.distributed import _dask, _dask_worker
from gnnd.distributed._dask import _Engine
from gnnd.distributed._leases import Leases
from gnnd.distributed._plan import read_plan
from gnnd.distributed._quiet import quiet, quiet_others
from gnnd.distributed._records import Records
from gnnd.distributed._schedule import FINISH, Schedule, Task
from gnnd.distributed._sizing import first_that_fits
from gnnd.distributed._storage import Damaged, storage
from gnnd.distributed._tasks import Carrier
from gnnd.distributed._worker import Worker
from shards import PATIENCE, K, check_finished, make_base, make_flat_base, worker

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


def new_cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as one:
        yield one


# One of all tests but those that kill its workers.
cluster = pytest.fixture(new_cluster, scope="module")
own_cluster = pytest.fixture(new_cluster)


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as one:
        yield one


def test_a_build(client, tmp_path):
    base, work, records = make_base(tmp_path), tmp_path / "work", []
    graph = gnnd.distributed.build(base, work, K, shards=6, threads=1, progress=records.append)
    assert isinstance(graph, gnnd.ShardedGraph)
    check_finished(work, base)
    assert len(records) == len(Schedule(6)) and records[-1]["tasks_done"] == len(Schedule(6))
    assert records[-1]["seconds_left"] == 0 and records[-1]["bytes"] > 0
    # A finished graph takes no task; another graph is refused.
    assert gnnd.distributed.build(base, work, K, shards=6, client=client).n == 600
    with pytest.raises(OSError, match="holds another graph"):
        gnnd.distributed.build(base, work, K, shards=5, client=client)


def test_dask_s_processes_are_quiet_meanwhile(client, tmp_path):
    """Its profiler and clocks have their pace again afterwards."""
    before = paces(client)
    seen = []

    def look(_):
        seen.append(paces(client))

    gnnd.distributed.build(
        make_base(tmp_path),
        tmp_path / "work",
        K,
        shards=2,
        threads=1,
        progress=look,
    )
    assert paces(client) == before
    _, nannies, scheduler = seen[0]
    assert scheduler["tick"] == 1000 and scheduler["sampler"] == 500 and scheduler["heartbeats"] == 2000
    for address, nanny in nannies.items():
        assert nanny["tick"] == 1000 and nanny["sampler"] == 500
        assert nanny["memory_monitor"] == before[1][address]["memory_monitor"]
    worker = client.submit(_paces_of_a_worker, pure=False).result()
    assert worker["tick"] == 1000 and all(often >= 500 for often in worker.values())


def paces(client):
    """In milliseconds: of workers, of their nannies, and of the scheduler."""

    def pace(dask_scheduler):
        return _paces_of(dask_scheduler)

    def pace_of_a_worker(dask_worker):
        return _paces_of(dask_worker)

    return client.run(pace_of_a_worker), client.run(pace_of_a_worker, nanny=True), client.run_on_scheduler(pace)


def _paces_of(server):
    from distributed import profile, scheduler

    callbacks = server.periodic_callbacks
    names = [name for name in ("profile", "tick", "memory_monitor", "monitor") if name in callbacks]
    return {
        **{name: callbacks[name].callback_time for name in names},
        "sampler": 10 if profile.sleep is time.sleep else 500,  # Dask's thread asks for 10
        "heartbeats": 1000 * scheduler.heartbeat_interval(1),
    }


@pytest.mark.parametrize("last", ["first", "second"])
def test_builds_beside_each_other_leave_the_pace_as_it_was(client, last):
    before = paces(client)
    builds = [quiet_others(client), quiet_others(client)]
    for build in builds:
        build.__enter__()
    assert paces(client)[2]["tick"] == 1000
    for build in builds if last == "second" else reversed(builds):
        build.__exit__(None, None, None)
    assert paces(client) == before


def _paces_of_a_worker():
    with quiet(distributed.get_worker()):
        return _paces_of(distributed.get_worker())


def test_the_sampler_sleeps_longer_meanwhile(client):
    """By the clock: a thread that asks for 10 ms gets what others of its process wait for."""
    began = time.monotonic()
    client.submit(_sleep_as_the_sampler, pure=False).result()
    assert time.monotonic() - began >= 0.5


def _sleep_as_the_sampler():
    from distributed import profile

    with quiet(distributed.get_worker()):
        profile.sleep(0.01)
    assert profile.sleep is time.sleep


def test_workers_are_asked_for_twice_a_second(client, tmp_path, monkeypatch):
    """Not for every task: the answer tells of all workers."""
    asked = []
    ask = client.scheduler_info
    monkeypatch.setattr(client, "scheduler_info", lambda **words: asked.append(1) or ask(**words))
    records = []
    words = {"shards": 6, "threads": 1, "client": client, "progress": records.append}
    gnnd.distributed.build(make_base(tmp_path), tmp_path / "work", K, **words)
    assert len(records) == len(Schedule(6)) and len(asked) <= 1 + records[-1]["seconds"] / 0.5 + 1


def test_as_many_shards_as_workers_need(client, tmp_path):
    base, work = make_base(tmp_path), tmp_path / "work"
    assert gnnd.distributed.build(base, work, K, threads=1).shards == 4  # two for each
    assert gnnd.distributed.build(base, work, K).shards == 4
    gnnd.distributed.start(base, tmp_path / "begun", K, shards=3)
    assert gnnd.distributed.build(base, tmp_path / "begun", K, threads=1).shards == 3
    assert gnnd.distributed.build(base, tmp_path / "near", K, plan="near", id_bytes=8, threads=1).shards == 4


def test_more_shards_where_two_do_not_fit():
    def plan(n, d, dtype, params):
        return {"total": n * 1000, "free": 4_000_000}

    assert first_that_fits([4, 5, 6, 7], 6000, 12, "u8", "cpu", {"k": 8}, plan) == 4
    assert first_that_fits([4, 5, 6, 7], 9000, 12, "u8", "cpu", {"k": 8}, plan) == 6
    assert first_that_fits([4, 5, 6, 7], 90000, 12, "u8", "cpu", {"k": 8}, plan) == 7


def test_near_pairs(client, tmp_path):
    base, work, records = make_flat_base(tmp_path), tmp_path / "work", []
    gnnd.distributed.build(base, work, K, shards=8, plan="near", threads=1, progress=records.append)
    check_finished(work, base, at_least=0.98)
    assert records[-1]["tasks_done"] == records[-1]["tasks"] == len(records)
    with pytest.raises(OSError, match="the plan is near, asked for is all"):
        gnnd.distributed.build(base, work, K, shards=8, client=client)


def test_workers_whose_memory_limit_is_too_small(tmp_path):
    """Dask would end them in every task, and the build would never end."""
    base, work = make_base(tmp_path, 3000), tmp_path / "work"
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, memory_limit="100KiB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(MemoryError, match="memory limits of up to 102400.*--memory-limit"),
    ):
        gnnd.distributed.build(base, work, K, shards=2, client=client)


def test_a_worker_that_is_too_small_is_passed_over(tmp_path, caplog):
    base, work = make_base(tmp_path, 3000), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=3)
    place = storage(str(work))
    plan = read_plan(place)
    held = 2 * 1000 * (4 * 12 + 8 * (plan.manifest.local_columns + 3 * K))
    assert plan.task_bytes == held

    class OfThree:
        def scheduler_info(self, n_workers):
            limits = {"small": held, "large": 2 * held, "without": 0}
            return {"workers": {name: {"memory_limit": limit, **self.about} for name, limit in limits.items()}}

        about: dict[str, object] = {}

    client = OfThree()
    engine = _Engine(client, Records(place, plan), plan, (), None)
    assert engine._workers() == (["large", "without"], None)
    client.about = {"resources": {"GPU": 1}}
    assert engine._workers() == (["large", "without"], {"GPU": 1})
    assert [record.getMessage() for record in caplog.records].count(
        f"small gets no tasks: its memory limit is {held}, a task holds {held}"
    ) == 1


def test_what_two_workers_tell_comes_in_any_order(tmp_path):
    gnnd.distributed.start(make_base(tmp_path, 2000), tmp_path / "work", K, shards=2)
    place = storage(str(tmp_path / "work"))
    plan, told = read_plan(place), []
    engine = _Engine(None, Records(place, plan), plan, (), told.append)
    last, before = (dataclasses.astuple(task) for task in (FINISH, Task("check", (0,))))
    for task, done in ((last, 4), (before, 3)):
        engine._heard.append({"key": "", "worker": "", "task": task, "moved": 0, "done": done, "tasks": 4})
    engine._tell_what_was_heard()
    assert [record["tasks_done"] for record in told] == [4, 4]
    assert engine._is_over


@pytest.mark.disturbed
def test_workers_that_are_killed_and_helpers(own_cluster, tmp_path):
    """Dask's workers are killed, and started again by their nannies; one of no engine helps."""
    base, work = make_base(tmp_path, 3000), tmp_path / "work"
    killed, over = [], threading.Event()

    def kill() -> None:
        chance = np.random.default_rng(0)
        while len(killed) < 3 and not over.wait(chance.uniform(0.2, 0.6)):
            there = list(client.run(os.getpid).values())
            if there:
                os.kill(there[chance.integers(len(there))], signal.SIGKILL)
                killed.append(time.monotonic())

    killer = threading.Thread(target=kill)
    gnnd.distributed.start(base, work, K, shards=12)
    helper = worker(work)
    with distributed.Client(own_cluster) as client:
        killer.start()
        try:
            gnnd.distributed.build(base, work, K, shards=12, client=client, threads=1, lease_seconds=0.6)
        finally:
            over.set()
            killer.join()
    assert helper.communicate(timeout=PATIENCE) and helper.returncode == 0
    assert killed
    check_finished(work, base)


@pytest.mark.disturbed
def test_a_lost_worker_s_task_is_free_at_once(own_cluster, tmp_path):
    """Dask knows that it is gone: nobody waits until its lease runs out."""
    base, work, lost, lease = make_base(tmp_path, 5000, 400), tmp_path / "work", [], 2 * PATIENCE
    with distributed.Client(own_cluster) as client:
        processes = client.run(os.getpid)

        def kill(now) -> None:
            busy = [address for address, tasks in client.processing().items() if tasks]
            if not lost and now["tasks_done"] >= 2 and busy and list((work / "leases").iterdir()):
                lost.append(busy[0])
                os.kill(processes[busy[0]], signal.SIGKILL)

        began = time.monotonic()
        gnnd.distributed.build(base, work, K, shards=4, client=client, threads=1, lease_seconds=lease, progress=kill)
    assert lost and time.monotonic() - began < lease / 2
    check_finished(work, base)


@pytest.mark.parametrize("short, handed_out", [(0, len(Schedule(3))), (PATIENCE, 1)])
def test_workers_with_a_gpu_are_told_by_their_resource(tmp_path, monkeypatch, short, handed_out):
    """They alone get tasks, one at a time; where these are short one of Dask's is for many."""
    monkeypatch.setattr(_dask_worker, "_SHORT", short)
    base, work, records = make_base(tmp_path), tmp_path / "work", []
    workers = {
        name: {"cls": distributed.Worker, "options": {"nthreads": 2, "resources": resources}}
        for name, resources in {"plain": {}, "gpu": {"GPU": 1}}.items()
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None}}
    with (
        distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        (gpu,) = [address for address, one in client.scheduler_info()["workers"].items() if one["name"] == "gpu"]
        ran = []
        real = client.submit

        def submit(*arguments, **options):
            ran.append((options["workers"], options["resources"]))
            return real(*arguments, **options)

        client.submit = submit
        words = {"device": "cpu", "threads": 1, "progress": records.append}
        gnnd.distributed.build(base, work, K, shards=3, client=client, **words)
        assert ran == [([gpu], {"GPU": 1})] * handed_out
        assert [record["tasks_done"] for record in records] == list(range(1, len(Schedule(3)) + 1))
    check_finished(work, base)


@pytest.fixture
def one_here(monkeypatch):
    """A client of one worker in this process, whose parts a test may alter. All tasks are short there."""
    monkeypatch.setattr(_dask_worker, "_SHORT", PATIENCE)
    workers = {"one": {"cls": distributed.Worker, "options": {"nthreads": 1}}}
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None}}
    with distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(1)
        yield client


def test_a_worker_that_goes_on_with_a_long_task_is_left_alone(one_here, tmp_path, monkeypatch):
    """Its first task is over for long, and nothing is heard of it meanwhile."""
    monkeypatch.setattr(_dask, "_PATIENCE", 0.1)
    monkeypatch.setattr(_dask, "_LOOK", 0.05)
    do, submit, handed_out, records = Worker._do, one_here.submit, [], []

    def slow(self, task):
        time.sleep(0.5 if task.kind == "merge" else 0)
        return do(self, task)

    monkeypatch.setattr(Worker, "_do", slow)
    monkeypatch.setattr(one_here, "submit", lambda *words, **more: handed_out.append(1) or submit(*words, **more))
    words = {"shards": 3, "client": one_here, "threads": 1, "progress": records.append}
    gnnd.distributed.build(make_base(tmp_path), tmp_path / "work", K, **words)
    assert len(handed_out) == 1 and len(records) == len(Schedule(3))


def test_a_worker_does_others_while_its_task_is_another_s(one_here, tmp_path, monkeypatch):
    """And tells of that one, too, when it can be done in the end."""
    base, work, told = make_base(tmp_path), tmp_path / "work", []
    log = distributed.Worker.log_event

    def hear(self, topic, message):
        told.append(message)
        log(self, topic, message)

    monkeypatch.setattr(distributed.Worker, "log_event", hear)
    gnnd.distributed.start(base, work, K, shards=2)
    words = {"shards": 2, "client": one_here, "threads": 1}
    build = threading.Thread(target=gnnd.distributed.build, args=(base, work, K), kwargs=words)
    with Leases(storage(str(work)), PATIENCE).held(Task("build", 0)):
        build.start()
        while not any("task" in one for one in told):
            time.sleep(0.01)
    build.join()
    begun = [Task(*one["begins"]) for one in told if "begins" in one]
    assert begun[:3] == [Task("build", 1), Task("build", 0), Task("merge", 0, 1, 1)]
    check_finished(work, base)


def test_what_has_to_be_done_again_is_not_told_as_done(one_here, tmp_path, monkeypatch):
    do, harmed, records = Carrier.do, [], []

    def harm(self, task):
        if task.kind in ("check", "finish") and task.kind not in harmed:
            harmed.append(task.kind)
            raise Damaged("altered")
        do(self, task)

    monkeypatch.setattr(Carrier, "do", harm)
    words = {"shards": 3, "client": one_here, "threads": 1, "progress": records.append}
    gnnd.distributed.build(make_base(tmp_path), tmp_path / "work", K, **words)
    assert harmed == ["check", "finish"]
    assert [record["tasks_done"] for record in records] == list(range(1, len(Schedule(3)) + 1))


def test_a_worker_begins_nothing_after_its_client_is_gone(one_here, tmp_path, monkeypatch):
    do, base, work = Worker._do, make_base(tmp_path), tmp_path / "work"

    def slow(self, task):
        time.sleep(0.1)
        return do(self, task)

    def stop(_):
        raise RuntimeError("enough")

    monkeypatch.setattr(Worker, "_do", slow)
    with pytest.raises(RuntimeError, match="enough"):
        gnnd.distributed.build(base, work, K, shards=8, client=one_here, threads=1, progress=stop)
    with _dask_worker._one_at_a_time:  # until it has returned
        assert not (work / "manifest.json").exists()
    gnnd.distributed.work(work)
    check_finished(work, base)


def test_builds_of_one_base_beside_each_other(client, tmp_path):
    """Each hears of its own tasks."""
    base, told, threads = make_base(tmp_path), ([], []), []
    for number, records in enumerate(told):
        words = {"shards": 6, "client": client, "threads": 1, "progress": records.append}
        threads.append(
            threading.Thread(
                target=gnnd.distributed.build,
                args=(base, tmp_path / f"work{number}", K),
                kwargs=words,
            )
        )
        threads[-1].start()
    for number, (thread, records) in enumerate(zip(threads, told, strict=True)):
        thread.join()
        assert len(records) == len(Schedule(6)) == records[-1]["tasks_done"]
        check_finished(tmp_path / f"work{number}", base)


def test_errors_of_tasks_reach_the_caller(client, tmp_path):
    base, work = make_base(tmp_path, 1500), tmp_path / "work"
    x = np.load(base)
    x[700, 3] = np.inf
    np.save(base, x)
    with pytest.raises(ValueError, match="from 500 on"):
        gnnd.distributed.build(base, work, K, shards=3, client=client)


def test_without_dask_or_a_client(monkeypatch, tmp_path):
    base = make_base(tmp_path)
    with pytest.raises(ValueError, match=r"[Cc]lient"):
        gnnd.distributed.build(base, tmp_path / uuid.uuid4().hex, K, shards=3)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install gnnd\[dask\]"):
        gnnd.distributed.build(base, tmp_path / "work", K, shards=3)
