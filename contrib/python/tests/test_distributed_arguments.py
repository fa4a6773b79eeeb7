# SPDX-License-Identifier: MIT
"""What may be wrong, or odd, of what builds by several processes are given."""

from __future__ import annotations

import os
import shutil
import threading
import warnings

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from gnnd.distributed._plan import seal, unseal
from shards import K, check_finished, make_base


@pytest.fixture
def begun(tmp_path):
    base, work = make_base(tmp_path, 200), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=3)
    return base, work


@pytest.mark.parametrize("work", ["", b"", "file://"])
def test_an_empty_name_is_not_the_present_folder(tmp_path, monkeypatch, work):
    base = make_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    for action in (lambda: gnnd.distributed.start(base, work, K, shards=2), lambda: gnnd.distributed.work(work)):
        with pytest.raises(ValueError, match="work is empty"):
            action()
    assert os.listdir(tmp_path) == [base.name]


def test_a_folder_by_its_url(tmp_path):
    """It is one: fsspec's files are not created in one step."""
    base, work = make_base(tmp_path), tmp_path / "new" / "work"
    gnnd.distributed.start(base, f"file://{work}", K, shards=2)
    gnnd.distributed.work(f"file://{work}")
    check_finished(work, base)


@pytest.mark.parametrize("seconds", [float("inf"), 1e15])
def test_leases_that_never_run_out(begun, seconds):
    base, work = begun
    failed: list[object] = []
    before, threading.excepthook = threading.excepthook, failed.append
    try:
        gnnd.distributed.work(work, lease_seconds=seconds)
    finally:
        threading.excepthook = before
    assert not failed
    check_finished(work, base)


@pytest.mark.parametrize("name", ["done", "leases"])
def test_a_copy_without_its_empty_folders(begun, name):
    """As object stores and some tools make it."""
    base, work = begun
    shutil.rmtree(work / name)
    gnnd.distributed.work(work)
    check_finished(work, base)


def test_a_folder_that_is_gone_is_not_made_again(begun):
    _, work = begun
    place = gnnd.distributed._storage.Folder(work)
    shutil.rmtree(work)
    with pytest.raises(FileNotFoundError):
        place.create("done/local-00000", b"x")
    assert not work.exists()


def test_words_that_nobody_knows(begun):
    base, work = begun
    with pytest.raises(TypeError, match="unknown parameter 'lease'"):
        gnnd.distributed.work(work, lease=5)
    for name in ("metric", "plan"):
        with pytest.raises(TypeError, match=f"{name} must be a str, not NoneType"):
            gnnd.distributed.start(base, work, K, shards=3, **{name: None})


def test_errors_speak_of_vectors_where_it_is_these(begun, tmp_path):
    _, work = begun
    with pytest.raises(ValueError, match="^device = tpu"):
        gnnd.distributed.work(work, device="tpu")
    with pytest.raises(ValueError, match="^threads"):
        gnnd.distributed.work(work, device="cpu", threads=5000)
    x = np.ones((200, 4), np.float32)
    x[150, 2] = np.nan
    np.save(tmp_path / "nan.npy", x)
    gnnd.distributed.start(tmp_path / "nan.npy", tmp_path / "other", K, shards=2)
    with pytest.raises(ValueError, match="^of the vectors from 100 on: vector 50 holds NaN"):
        gnnd.distributed.work(tmp_path / "other")


@pytest.mark.parametrize("what", [{"manifest": None}, {"recall_objects": "x"}, {"recall_objects": -1}, {"manifest": 5}])
def test_plans_that_are_none(begun, what):
    """With a checksum that is right."""
    _, work = begun
    path = work / "build.json"
    path.write_bytes(seal({**unseal(path.read_bytes(), "build.json"), **what}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError, match="not the plan of a build"):
            gnnd.distributed.work(work)
