# SPDX-License-Identifier: MIT
"""Workers on one machine compute by turns."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import Executor, Future
from signal import SIGKILL, SIGSTOP
from types import SimpleNamespace

import pytest

from gnnd.distributed import _turns
from gnnd.distributed._schedule import Task
from gnnd.distributed._turns import Turns
from shards import PATIENCE, begin, carrier, check_finished

HOLD = """
import os, sys, time
from gnnd.distributed._turns import Turns
os.sched_getaffinity = lambda _: set(range(int(sys.argv[1])))
with Turns(1, sys.argv[2]).waited_for() as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def among():
    """Workers of other tests, which run at the same time, have turns of their own."""
    return uuid.uuid4().hex


@pytest.fixture
def holder(among):
    """A process that has one of two processors' turns until it is killed."""
    command = [sys.executable, "-c", HOLD, "2", among]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def bind(monkeypatch, processors: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))


@pytest.mark.parametrize(("threads", "at_a_time"), [(1, 7), (2, 3), (3, 2)])
def test_no_more_at_a_time_than_there_are_processors(monkeypatch, among, threads, at_a_time):
    bind(monkeypatch, 7)
    lock, now, most, turns = threading.Lock(), 0, 0, []

    def compute() -> None:
        nonlocal now, most
        with Turns(threads, among).waited_for() as mine:
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.05)
            with lock:
                now -= 1
                turns.append(mine)

    workers = [threading.Thread(target=compute) for _ in range(18)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert turns == [True] * 18
    assert most == at_a_time


@pytest.mark.parametrize(("processors", "threads"), [(7, 4), (7, 7), (7, 8)])
def test_who_takes_most_processors_does_not_wait(monkeypatch, among, processors, threads):
    bind(monkeypatch, processors)
    with Turns(threads, among).waited_for(), Turns(threads, among).waited_for() as mine:
        assert not mine


def test_who_is_killed_has_no_turn(monkeypatch, among, holder):
    monkeypatch.setattr(_turns, "_LEAST", 100)
    bind(monkeypatch, 2)
    killer = threading.Timer(0.2, holder.send_signal, [SIGKILL])
    began = time.monotonic()
    killer.start()
    with Turns(1, among).waited_for() as first, Turns(1, among).waited_for() as second:
        assert (first, second) == (True, True)
    assert 0.15 < time.monotonic() - began < 50


def test_nobody_waits_forever_for_who_is_stopped(monkeypatch, among, holder):
    monkeypatch.setattr(_turns, "_LEAST", 0.3)
    bind(monkeypatch, 2)
    holder.send_signal(SIGSTOP)
    began = time.monotonic()
    with Turns(1, among).waited_for() as first, Turns(1, among).waited_for() as second:
        assert (first, second) == (True, False)
    assert time.monotonic() - began >= 0.3


def test_who_has_computed_for_long_waits_as_long(monkeypatch, among):
    monkeypatch.setattr(_turns, "_LEAST", 0.0)
    bind(monkeypatch, 1)
    turns = Turns(1, among)
    with turns.waited_for():
        time.sleep(0.3)
    with Turns(1, among).waited_for():
        began = time.monotonic()
        with turns.waited_for() as mine:
            assert not mine
        assert 0.6 <= time.monotonic() - began < 50


def test_who_has_computed_for_long_waits_as_long_after_a_short_turn(monkeypatch, among):
    monkeypatch.setattr(_turns, "_LEAST", 0.0)
    bind(monkeypatch, 1)
    turns = Turns(1, among)
    for seconds in (0.3, 0.0):
        with turns.waited_for():
            time.sleep(seconds)
    with Turns(1, among).waited_for():
        began = time.monotonic()
        with turns.waited_for() as mine:
            assert not mine
        assert time.monotonic() - began >= 0.6


def test_where_there_are_no_such_addresses_nobody_waits(monkeypatch, among):
    monkeypatch.setattr(_turns, "_LEAST", 100)
    bind(monkeypatch, 1)

    class Refused(socket.socket):
        def bind(self, address):
            raise PermissionError(errno.EACCES, "not allowed")

    monkeypatch.setattr(socket, "socket", Refused)
    began = time.monotonic()
    with Turns(1, among).waited_for() as mine:
        assert not mine
    assert time.monotonic() - began < 50


def test_who_is_forked_has_no_turn(monkeypatch, among):
    monkeypatch.setattr(_turns, "_LEAST", 0.5)
    bind(monkeypatch, 1)
    with Turns(1, among).waited_for() as mine:
        assert mine
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with Turns(1, among).waited_for() as mine:
            assert mine
    finally:
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)


def test_workers_of_other_threads_have_turns_of_their_own(monkeypatch, among):
    bind(monkeypatch, 4)
    with Turns(2, among).waited_for(), Turns(2, among).waited_for(), Turns(1, among).waited_for() as mine:
        assert mine


def test_who_waits_for_many_hears_each(monkeypatch, among):
    monkeypatch.setattr(_turns, "_LEAST", 100)
    bind(monkeypatch, 3)
    release = [threading.Event() for _ in range(3)]

    def hold(event: threading.Event) -> None:
        with Turns(1, among).waited_for():
            event.wait(60)

    holders = [threading.Thread(target=hold, args=(event,)) for event in release]
    for thread in holders:
        thread.start()
    while len(_turns._turns_here) < 3:
        time.sleep(0.01)
    timer = threading.Timer(0.3, release[1].set)
    began = time.monotonic()
    timer.start()
    with Turns(1, among).waited_for() as mine:
        assert mine
    assert 0.25 < time.monotonic() - began < 50
    for event in release:
        event.set()
    for thread in holders:
        thread.join()


def test_who_is_bound_to_other_processors_does_not_wait(monkeypatch, among, holder):
    bind(monkeypatch, 1)
    with Turns(1, among).waited_for() as mine:
        assert mine


class AtOnce(Executor):
    def submit(self, action, /, *arguments, **words):
        future: Future = Future()
        future.set_result(action(*arguments, **words))
        return future


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_folds_in_its_turn_but_waits_for_no_storage_in_it(tmp_path, monkeypatch, late):
    base, work = begin(tmp_path, shards=2)
    hands = carrier(base, work)
    for shard in range(2):
        hands.do(Task("build", shard))
    over, held, folds = threading.Event(), [False], []
    if not late:
        monkeypatch.setattr(hands, "_movers", AtOnce)
        over.set()

    @contextlib.contextmanager
    def waited_for():
        held[0] = True
        yield True
        held[0] = False
        over.set()

    read, fold = hands._lists, hands._fold
    monkeypatch.setattr(hands, "_turns", SimpleNamespace(waited_for=waited_for))
    monkeypatch.setattr(hands, "_lists", lambda *about: read(*about) if over.wait(PATIENCE) else None)
    monkeypatch.setattr(hands, "_fold", lambda *about: folds.append(held[0]) or fold(*about))
    hands.do(Task("merge", 0, 1, 1))
    assert folds == [not late] * 2 and not held[0]
    for task in [Task("check", 0), Task("check", 1), Task("finish")]:
        hands.do(task)
    check_finished(work, base)
