# SPDX-License-Identifier: MIT
"""Builds by several processes in an object store: moto's S3 server on the loopback, undisturbed and disturbed."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import uuid

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from conftest import check_graph, clustered, recall_of
from shards import PATIENCE, K

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("s3fs")
pytest.importorskip("moto")

from gnnd.distributed import _objects  # noqa: E402
from gnnd.distributed._base import open_base  # noqa: E402
from gnnd.distributed._objects import Objects, Reader  # noqa: E402
from gnnd.distributed._plan import finished  # noqa: E402
from gnnd.distributed._storage import Damaged  # noqa: E402
from s3_server import FAULTS, serving  # noqa: E402

N, D = 600, 12


@pytest.fixture(scope="module")
def server():
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")
    with serving() as (url, disturbance):
        yield {"endpoint_url": url, "config_kwargs": {"read_timeout": 1, "retries": {"max_attempts": 0}}}, disturbance


@pytest.fixture
def bucket(server, monkeypatch):
    """URL of a bucket with a base, how to get there, and what disturbs it."""
    options, disturbance = server
    disturbance.share = 0.0
    monkeypatch.setattr(_objects, "PAUSE", 0.01)
    name = f"bucket-{uuid.uuid4().hex}"
    patient = {**options, "config_kwargs": {"read_timeout": PATIENCE}}  # nothing here is tried again
    fs = fsspec.filesystem("s3", **patient, use_listings_cache=False)
    fs.mkdir(name)
    path = f"/tmp/{name}.npy"
    np.save(path, clustered(N, D))
    fs.put_file(path, f"{name}/base.npy")
    os.unlink(path)
    yield f"s3://{name}", options, disturbance
    disturbance.share = 0.0


def check(url, options, folder) -> gnnd.ShardedGraph:
    """The graph follows the invariants, and nothing else is left."""
    gnnd.distributed.fetch(f"{url}/work", folder, storage_options=options)
    graph, x = gnnd.load(folder), clustered(N, D)
    check_graph(graph.to_graph(), x, "l2")
    assert recall_of(graph.to_graph(), x, "l2", K) >= 0.985
    left = Objects(f"{url}/work", options).names()
    assert len(left) == graph.shards + 1 and "manifest.json" in left
    return graph


def test_a_build(bucket, tmp_path):
    url, options, _ = bucket
    gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, shards=3, storage_options=options)
    with pytest.raises(FileNotFoundError, match="No finished graph"):
        gnnd.distributed.fetch(f"{url}/work", tmp_path / "early", storage_options=options)
    with pytest.raises(OSError, match="another graph"):
        gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, shards=4, storage_options=options)
    staging = tmp_path / "staging"
    given = {"storage_options": options, "staging": str(staging), "staging_bytes": 200_000}
    assert gnnd.distributed.work(f"{url}/work", **given) == 10
    check(url, options, tmp_path / "graph")
    assert gnnd.distributed.work(f"{url}/work", **given) == 0
    gc.collect()
    assert list(staging.iterdir()) == []
    with pytest.raises(OSError, match="staging_bytes = 100"):
        Objects(f"{url}/work", options, str(staging), 100).fetch("manifest.json", 200)


def test_what_is_in_the_bucket_is_what_a_folder_would_hold(bucket, tmp_path):
    """One worker with one thread builds the same graph at both places."""
    url, options, _ = bucket
    np.save(tmp_path / "base.npy", clustered(N, D))
    gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, shards=3, storage_options=options)
    gnnd.distributed.work(f"{url}/work", threads=1, storage_options=options)
    gnnd.distributed.start(tmp_path / "base.npy", tmp_path / "work", K, shards=3)
    gnnd.distributed.work(tmp_path / "work", threads=1)
    here, there = gnnd.load(tmp_path / "work"), check(url, options, tmp_path / "graph")
    assert (here.to_graph().ids == there.to_graph().ids).all()
    assert here.measured == there.measured and here.to_graph()._base == there.to_graph()._base


@pytest.mark.disturbed
def test_near_pairs_in_a_bucket(bucket, tmp_path):
    """As in a folder; with what is altered made anew, and replies that are disturbed."""
    url, options, disturbance = bucket
    words = {"shards": 4, "plan": "near"}
    gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, storage_options=options, **words)
    np.save(tmp_path / "base.npy", clustered(N, D))
    gnnd.distributed.start(tmp_path / "base.npy", tmp_path / "work", K, **words)
    gnnd.distributed.work(tmp_path / "work", threads=1)
    place, harmed = Objects(f"{url}/work", options), set()

    def harm(_):
        """The newest of each kind of file is altered, once; those that nobody needs any more do no harm."""
        for name in place.names():
            kind = name.partition("-")[0]
            if name.endswith(".bin") and kind not in harmed and kind != "sample.bin":
                data = bytearray(place.read(name))
                data[len(data) // 3] ^= 1
                place.replace(name, bytes(data))
                harmed.add(kind)

    disturbance.faults, disturbance.share = FAULTS, 0.03
    gnnd.distributed.work(f"{url}/work", threads=1, storage_options=options, progress=harm)
    disturbance.share = 0.0
    assert harmed == {"planes", "cells", "rows", "parts", "borders"}
    here, there = gnnd.load(tmp_path / "work"), check(url, options, tmp_path / "graph")
    assert (here.to_graph().ids == there.to_graph().ids).all()
    assert here.measured == there.measured


@pytest.mark.disturbed
@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_is_disturbed(bucket, tmp_path, fault):
    url, options, disturbance = bucket
    gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, shards=2, storage_options=options)
    disturbance.seen[fault], disturbance.faults = 0, (fault,)
    disturbance.share = 0.02 if fault == "slow" else 0.08
    gnnd.distributed.work(f"{url}/work", storage_options=options)
    disturbance.share = 0.0
    assert disturbance.seen[fault] > 0
    check(url, options, tmp_path / "graph")


def _work(url, options, done):
    _objects.PAUSE = 0.01
    done.put(gnnd.distributed.work(url, threads=1, lease_seconds=5, storage_options=options))


@pytest.mark.disturbed
def test_two_processes_and_all_faults_at_once(bucket, tmp_path):
    """They have nothing in common but the server. A lost reply never makes two of one."""
    url, options, disturbance = bucket
    gnnd.distributed.start(f"{url}/base.npy", f"{url}/work", K, shards=4, storage_options=options)
    disturbance.faults, disturbance.share = FAULTS, 0.05
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    workers = [context.Process(target=_work, args=(f"{url}/work", options, done)) for _ in range(2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join(PATIENCE)
    assert [one.exitcode for one in workers] == [0, 0]
    disturbance.share = 0.0
    assert done.get() + done.get() >= 15
    check(url, options, tmp_path / "graph")


def test_one_of_many_creates(bucket):
    url, options, disturbance = bucket
    disturbance.faults, disturbance.share = ("lost reply", "error"), 0.2
    place = Objects(url, options)
    for turn in range(10):
        created = [place.create(f"done/x{turn}", str(i).encode()) for i in range(3)]
        assert created == [True, False, False]
        assert place.read(f"done/x{turn}") == b"0"


def test_stores_without_conditional_puts_are_refused(bucket, monkeypatch):
    url, options, _ = bucket
    place = Objects(url, options)
    real = place._fs.pipe_file
    monkeypatch.setattr(place._fs, "pipe_file", lambda path, data, mode=None: real(path, data))
    with pytest.raises(OSError, match="on the condition"):
        place.check()


def test_stores_that_fail_for_good(bucket, monkeypatch):
    url, options, disturbance = bucket
    monkeypatch.setattr(_objects, "_ATTEMPTS", 2)
    place = Objects(url, options)
    disturbance.faults, disturbance.share = ("error",), 1.0
    for action in (
        lambda: place.read("a"),
        lambda: place.create("a", b""),
        lambda: place.replace("a", b""),
        lambda: place.names(),
        lambda: place.fetch("a", 3),
        lambda: place.delete("a"),
        lambda: open_base(f"{url}/base.npy", options),
    ):
        with pytest.raises(OSError, match="2 times"):
            action()


def test_objects_that_are_gone_or_others(bucket, tmp_path):
    url, options, _ = bucket
    place = Objects(url, options)
    assert place.read("none") is None and place.names("none") == set() and finished(place) is None
    place.delete("none")
    with pytest.raises(Damaged, match="gone"):
        place.fetch("none", 5)
    place.replace("some", b"12345")
    with pytest.raises(Damaged, match="5 bytes, 6 were written"):
        place.fetch("some", 6)
    with pytest.raises(Damaged, match="no name"):
        place.read("../some")
    with pytest.raises(FileNotFoundError):
        open_base(f"{url}/none.npy", options)


def test_large_objects_go_in_parts(bucket, monkeypatch):
    url, options, disturbance = bucket
    monkeypatch.setattr(_objects, "BLOCK", 100_000)
    place = Objects(url, options)
    data = np.random.default_rng(0).integers(0, 256, 1_234_567, np.uint8).tobytes()
    disturbance.faults, disturbance.share = ("truncate", "error"), 0.2
    with open(place.path_for("large.gnnd"), "wb") as file:
        file.write(data)
    place.publish("large.gnnd")
    place.discard("large.gnnd")
    with open(place.fetch("large.gnnd", len(data)), "rb") as file:
        assert file.read() == data
    assert Reader(f"{url}/large.gnnd", options).read(5, 700_000) == data[5:700_005]


@pytest.mark.parametrize("kind", ["fbin", "u8bin", "bf16bin", "fvecs", "bvecs", "npy", "npy2"])
def test_bases_in_a_store(bucket, tmp_path, kind):
    """They are those that the library reads from a file."""
    url, options, _ = bucket
    x = np.random.default_rng(0).integers(0, 200, size=(40, 6))
    dtype = {"u8bin": np.uint8, "bvecs": np.uint8, "bf16bin": np.uint16, "npy2": np.float16}.get(kind, np.float32)
    x = x.astype(dtype)
    path = tmp_path / f"x.{kind.rstrip('2')}"
    if kind.startswith("npy"):
        with open(path, "wb") as file:
            np.lib.format.write_array(file, x, version=(2, 0) if kind == "npy2" else (1, 0))
    elif kind.endswith("vecs"):
        path.write_bytes(b"".join(np.int32(6).tobytes() + row.tobytes() for row in x))
    else:
        path.write_bytes(np.array(x.shape, np.int32).tobytes() + x.tobytes())
    fs = fsspec.filesystem("s3", **options, use_listings_cache=False)
    fs.put_file(str(path), f"{url[5:]}/{path.name}")
    there, here = open_base(f"{url}/{path.name}", options), open_base(path)
    for field in ("n", "d", "dtype", "checksum", "bytes", "format"):
        assert there.record[field] == here.record[field]
    np.testing.assert_array_equal(there.read(7, 20).array, here.read(7, 20).array)
    np.testing.assert_array_equal(there.read(7, 20).array, x[7:27])


@pytest.mark.parametrize(
    "name, data, text",
    [
        ("a.fbin", np.array([9, 4], np.int32).tobytes() + bytes(9), "17 bytes, 152 expected"),
        ("a.fbin", b"abc", "not a file of vectors"),
        ("a.fvecs", np.array([0, 4], np.int32).tobytes(), "not a file of vectors"),
        ("a.txt", b"1 2 3 4 5 6 7 8", "unknown format 'txt'"),
        ("a.npy", b"no array of numpy's", "not a file of vectors"),
    ],
)
def test_bases_that_are_none(bucket, name, data, text):
    url, options, _ = bucket
    Objects(url, options).replace(name, data)
    with pytest.raises(OSError, match=text):
        open_base(f"{url}/{name}", options)


def test_arrays_that_cannot_be_read_in_ranges(bucket, tmp_path):
    url, options, _ = bucket
    fs = fsspec.filesystem("s3", **options, use_listings_cache=False)
    x = np.zeros((4, 3))
    for array in (x, np.asfortranarray(x.astype(np.float32)), x[0].astype(np.float32)):
        np.save(tmp_path / "a.npy", array)
        fs.put_file(str(tmp_path / "a.npy"), f"{url[5:]}/a.npy")
        with pytest.raises(OSError, match="an array of"):
            open_base(f"{url}/a.npy", options)
    rows = b"".join(np.int32(d).tobytes() + bytes(8) for d in itertools.chain([2] * 40, [3], [2] * 9))
    Objects(url, options).replace("a.fvecs", rows)
    with pytest.raises(OSError, match="d = 2"):
        open_base(f"{url}/a.fvecs", options).read(38, 5)


def test_without_fsspec(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"pip install gnnd\[s3\]"):
        gnnd.distributed.work("s3://bucket/work")
