# SPDX-License-Identifier: MIT
"""Names of files: as str, bytes and os.PathLike, and such as are no text."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import gnnd
from conftest import clustered


@pytest.fixture(scope="module")
def graph():
    return gnnd.build(clustered(100, 4), 3, device="cpu")


@pytest.mark.parametrize("name", [b"plain", "gr\N{LATIN SMALL LETTER SHARP S}e".encode(), b"no \xff\xfe text"])
@pytest.mark.parametrize("form", [os.fsencode, os.fsdecode, lambda path: Path(os.fsdecode(path))])
def test_graphs(tmp_path, graph, name, form):
    path = form(os.fsencode(tmp_path) + b"/" + name)
    graph.save(path)
    assert os.listdir(os.fsencode(tmp_path)) == [name]
    np.testing.assert_array_equal(gnnd.load(path).ids, graph.ids)


@pytest.mark.parametrize("form", [os.fsencode, os.fsdecode])
def test_vectors_and_shards(tmp_path, form):
    x = clustered(100, 4)
    there = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(there)
    base, work = form(there + b"/\xfe.npy"), form(there + b"/\xfd")
    with open(base, "wb") as file:
        np.save(file, x)
    np.testing.assert_array_equal(gnnd.read_vectors(base), x)
    made = gnnd.build_sharded(base, work, k=3, shards=2)
    assert gnnd.build_sharded(base, work, k=3, shards=2, resume=True).measured == made.measured
    assert isinstance(made.base, str)
    gnnd.load(work).save(form(there + b"/one"))
    np.testing.assert_array_equal(gnnd.load(form(there + b"/one")).ids, made.to_graph().ids)


def test_messages_hold_what_is_no_text(tmp_path, graph):
    missing = os.fsencode(tmp_path) + b"/\xff/graph"
    with pytest.raises(OSError, match=r"/\\xff/graph: cannot create"):
        graph.save(missing)
    with pytest.raises(FileNotFoundError, match="graph"):
        gnnd.load(missing)
    os.mkdir(os.path.dirname(missing))
    with open(missing, "wb") as file:
        file.write(b"none")
    for read in (gnnd.load, gnnd.read_vectors):
        with pytest.raises(OSError, match=r"/\\xff/graph: "):
            read(missing)


CALLS = {
    "save": lambda graph, path: graph.save(path),
    "gnnd.save": gnnd.save,
    "load": lambda graph, path: gnnd.load(path),
    "read_vectors": lambda graph, path: gnnd.read_vectors(path),
    "base": lambda graph, path: gnnd.build_sharded(path, "work"),
    "work": lambda graph, path: gnnd.build_sharded(__file__, path),
    "start": lambda graph, path: gnnd.distributed.start(path, "work", shards=2),
    "distributed.work": lambda graph, path: gnnd.distributed.work(path),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_path(graph, call):
    for path in ("a\0b", b"a\0b", Path("a\0b")):
        with pytest.raises(ValueError, match=r"= 'a\\x00b' has a null character in it"):
            CALLS[call](graph, path)
    for path in (5, None, [], 1.5):
        with pytest.raises(TypeError, match=f"must be a path, as str, bytes or os.PathLike, not {type(path).__name__}"):
            CALLS[call](graph, path)
