# SPDX-License-Identifier: MIT
"""Graphs in shards that several processes build in a folder."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from conftest import stop_after_two_tasks
from gnnd.distributed._schedule import FINISH, Schedule, State
from gnnd.distributed._storage import Damaged, Folder, checked_name
from shards import PATIENCE, K, check_finished, make_base, worker


@pytest.mark.parametrize("shards", [1, 2, 3, 6, 7, 16])
def test_every_pair_meets_once(shards):
    schedule = Schedule(shards)
    assert [(task.first, task.second) for task in sorted(schedule.merges, key=lambda task: task.shards)] == list(
        itertools.combinations(range(shards), 2)
    )
    for turn in range(1, schedule.rounds + 1):
        busy = [shard for task in schedule.merges if task.round == turn for shard in task.shards]
        assert len(busy) == len(set(busy)) >= shards - 1
    assert len(schedule) == shards + shards * (shards - 1) // 2 + shards + 1


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_tasks_come_when_what_they_need_is_there(shards):
    """One task after the other, taken from those that are ready, whatever their order: all are done once."""
    random, schedule, names, done = np.random.default_rng(0), Schedule(shards), set(), []
    while True:
        ready = State.of(schedule, names).ready()
        task = ready[random.integers(len(ready))]
        if task == FINISH:
            break
        assert task not in done
        done.append(task)
        if task.kind == "build":
            names |= {f"local-{task.first:05d}", f"nearest-{task.first:05d}", f"lists-{task.first:05d}.0000"}
        else:
            names |= {f"lists-{shard:05d}.{task.round:04d}" for shard in task.shards} | set(task.records)
    assert sorted(done, key=str) == sorted(schedule.builds + schedule.merges + schedule.checks, key=str)
    assert State.of(schedule, names).done() == len(schedule) - 1


@pytest.mark.parametrize("shards", [2, 5, 8])
def test_no_task_is_overlooked(shards):
    """Those that are ready, and how many are done, are what looking at every task finds, whatever is lost."""
    random, schedule = np.random.default_rng(shards), Schedule(shards)
    names = {f"{what}-{shard:05d}" for shard in range(shards) for what in ("local", "nearest", "checked")}
    names |= {f"lists-{shard:05d}.{turn:04d}" for shard in range(shards) for turn in range(schedule.rounds + 1)}
    for part in np.linspace(0, 1, 50):
        state = State.of(schedule, {name for name in sorted(names) if random.random() < part})
        tasks = [*schedule.builds, *schedule.merges, *schedule.checks]
        ready = [task for task in tasks if state.is_ready(task)]
        assert state.done() == sum(map(state.is_done, tasks))
        assert set(state.ready()) == set(ready or [FINISH] * state.is_ready(FINISH))


def test_what_is_lost_is_a_task_again():
    schedule = Schedule(2)
    names = {f"{what}-0000{shard}" for what in ("local", "nearest") for shard in (0, 1)}
    names |= {"lists-00000.0000", "lists-00001.0001", "lists-00001.0000"}
    state = State.of(schedule, names)
    first, second = schedule.checks  # the second one's lists need not wait for the first one's
    assert state.ready() == [*schedule.merges, second] and state.sides(schedule.merges[0]) == [0]
    assert State.of(schedule, names - {"local-00001"}).ready() == [schedule.builds[1], second]
    assert State.of(schedule, names - {"lists-00000.0000"}).ready() == [schedule.builds[0], second]
    all_merged = names | {"lists-00000.0001"} - {"local-00001"}
    assert State.of(schedule, all_merged).ready() == [first, second]
    assert State.of(schedule, all_merged | {"checked-00000"}).ready() == [second]
    assert State.of(schedule, all_merged | {"checked-00000", "checked-00001"}).ready() == [FINISH]
    unmerged = State.of(schedule, names | {"checked-00000", "checked-00001"})  # of lists that are lost
    assert unmerged.ready() == schedule.merges and not unmerged.is_done(first) and unmerged.is_done(second)
    strange = {"lists-00009.0001", "lists-00000.0009", "nearest-00002", "lists-00000.1", "x", "local-00000.tmp"}
    assert State.of(schedule, names | strange).ready() == state.ready()


@pytest.mark.parametrize("shards, metric", [(1, "l2"), (2, "cosine"), (5, "l2"), (6, "ip")])
def test_one_worker(tmp_path, shards, metric):
    base, work, records = make_base(tmp_path), tmp_path / "work", []
    assert gnnd.distributed.start(base, work, K, metric, shards=shards)
    assert gnnd.distributed.work(work, progress=records.append) == len(Schedule(shards))
    graph = check_finished(work, base, metric)
    assert (graph.n, graph.k, graph.shards, graph.metric) == (600, K, shards, metric)
    assert [record["tasks_done"] for record in records] == list(range(1, len(Schedule(shards)) + 1))
    assert graph.measured.objects == 600 and graph.recall >= 0.98
    # Finished is finished, for whoever asks.
    assert gnnd.distributed.work(work) == 0
    assert not gnnd.distributed.start(base, work, K, metric, shards=shards)
    assert gnnd.build_sharded(base, work, K, metric, shards=shards, resume=True).n == 600


@pytest.mark.parametrize("recall, objects", [(0, None), (1, 600)])
def test_recalls_that_need_no_sample(tmp_path, recall, objects):
    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=3, recall=recall)
    gnnd.distributed.work(work)
    graph = check_finished(work, base)
    assert (None if graph.measured is None else graph.measured.objects) == objects


def test_other_types_of_vectors(tmp_path):
    x = np.random.default_rng(0).integers(0, 250, size=(900, 8)).astype(np.uint8)
    np.save(tmp_path / "base.npy", x)
    gnnd.distributed.start(tmp_path / "base.npy", tmp_path / "work", 6, shards=3)
    gnnd.distributed.work(tmp_path / "work")
    exact = gnnd.build_exact(x, 6)
    assert (gnnd.load(tmp_path / "work").to_graph().distances == exact.distances).mean() > 0.98


def test_several_processes(tmp_path):
    """All of them are started with the same words: one begins the build, the others join it."""
    base, work = make_base(tmp_path), tmp_path / "new" / "work"
    workers = [worker(work, "--base", base, "-k", K, "--shards", 6) for _ in range(3)]
    told = [one.communicate(timeout=PATIENCE)[1] for one in workers]
    assert [one.returncode for one in workers] == [0, 0, 0], told
    assert sum(len(re.findall(r": \d+\.\d+ s\b", text)) for text in told) >= len(Schedule(6))
    check_finished(work, base)


def test_the_tool_s_errors(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "gnnd", "worker", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    missing = run(tmp_path / "missing")
    assert missing.returncode == 1 and "missing" in missing.stderr and missing.stderr.count("\n") == 1
    assert run(tmp_path, "--shards", 3).returncode == 2
    base = make_base(tmp_path)
    many = run(tmp_path / "work", "--base", base, "--shards", 1000)
    assert many.returncode == 1 and "shards = 1000" in many.stderr
    assert "WORK" in run("--help").stdout


def test_one_place_has_one_graph(tmp_path):
    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=3)
    assert gnnd.distributed.start(base, work, K, shards=3)  # joins
    for other in ({"shards": 4}, {"shards": 3, "metric": "l1"}, {"shards": 3, "k": 9}, {"shards": 3, "seed": 5}):
        with pytest.raises(OSError, match="holds another graph"):
            gnnd.distributed.start(base, work, **{"k": K, **other})
    for resume in (False, True):
        with pytest.raises(OSError, match="several processes build"):
            gnnd.build_sharded(base, work, K, shards=3, resume=resume)
    gnnd.distributed.work(work)
    with pytest.raises(OSError, match="the number of shards"):
        gnnd.distributed.start(base, work, K, shards=4)
    alone = tmp_path / "alone"
    stop_after_two_tasks(np.load(base), alone, K)
    with pytest.raises(OSError, match="build_sharded"):
        gnnd.distributed.start(base, alone, K, shards=3)


def test_a_base_that_is_another(tmp_path):
    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=3)
    with pytest.raises(FileNotFoundError):
        gnnd.distributed.work(work, base=tmp_path / "missing.npy")
    moved = tmp_path / "moved.npy"
    np.save(moved, np.load(base) + 1)
    with pytest.raises(OSError, match="checksum differs"):
        gnnd.distributed.work(work, base=moved)
    os.rename(base, moved)
    gnnd.distributed.work(work, base=moved)
    check_finished(work, moved)


@pytest.mark.parametrize(
    "params", [{"shards": 0}, {"shards": 1025}, {"shards": 3, "k": 0}, {"shards": 3, "metric": "x"}]
)
def test_parameters_that_are_none(tmp_path, params):
    base = make_base(tmp_path)
    with pytest.raises(ValueError):
        gnnd.distributed.start(base, tmp_path / "work", **params)
    with pytest.raises(FileNotFoundError):
        gnnd.distributed.work(tmp_path / "work")


def test_vectors_that_are_none(tmp_path):
    x = np.load(make_base(tmp_path, 1500))
    x[700, 3] = np.nan
    np.save(tmp_path / "base.npy", x)
    gnnd.distributed.start(tmp_path / "base.npy", tmp_path / "work", K, shards=3)
    with pytest.raises(ValueError, match="from 500 on.*200"):
        gnnd.distributed.work(tmp_path / "work")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../b", "a/b/c", ".x", "", "a\0", "x" * 200, "a/.b", "A"])
def test_names_stay_in_the_folder(tmp_path, name):
    with pytest.raises(Damaged):
        checked_name(name)
    with pytest.raises(Damaged):
        Folder(tmp_path).replace(name, b"")


def test_records_do_not_lead_out(tmp_path, caplog):
    """A forged record, whose checksum is right, names a file elsewhere: it does not count."""
    from gnnd.distributed._plan import seal, unseal

    caplog.set_level(logging.WARNING)
    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=2)

    class Stop(Exception):
        pass

    def stop(record):
        raise Stop

    for _ in range(2):
        with pytest.raises(Stop):
            gnnd.distributed.work(work, progress=stop)
    record = work / "done" / "local-00001"
    content = unseal(record.read_bytes(), "")
    (tmp_path / "secret.gnnd").write_bytes((work / content["file"]).read_bytes())
    record.write_bytes(seal({**content, "file": "../secret.gnnd"}))
    gnnd.distributed.work(work)
    assert "no name of an object" in caplog.text
    assert (tmp_path / "secret.gnnd").exists()
    check_finished(work, base)


def test_plans_of_other_kinds(tmp_path):
    from gnnd.distributed._plan import seal

    base, work = make_base(tmp_path), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=2)
    plan = json.loads((work / "build.json").read_bytes())
    for changes, text in (
        ({"version": 3}, "version 3"),
        ({"format": "x"}, "not a build"),
        ({"manifest": "{}"}, "manifest"),
    ):
        content = {**plan, **changes}
        del content["checksum"]
        (work / "build.json").write_bytes(seal(content))
        with pytest.raises(OSError, match=text):
            gnnd.distributed.work(work)
    (work / "build.json").write_bytes(b"{}")
    with pytest.raises(OSError, match="altered"):
        gnnd.distributed.work(work)
    gnnd.distributed.start(base, work, K, shards=2)  # who knows what is wanted makes it anew
    gnnd.distributed.work(work)
    check_finished(work, base)
