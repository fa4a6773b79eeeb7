# SPDX-License-Identifier: MIT
"""Graphs of several processes whose ids have 64 bits."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import numpy as np
import pytest

import gnnd
import gnnd.distributed
from gnnd import _native
from gnnd.distributed._cut import sum_of
from gnnd.distributed._plan import Plan, read_plan
from gnnd.distributed._records import new_graph, parts
from gnnd.distributed._schedule import Task
from gnnd.distributed._sizing import counts_that_fit
from gnnd.distributed._storage import Folder
from near import begin, do_until
from shards import K, carrier, check_finished, make_flat_base

MANY = 3_000_000_000


def make_sparse_base(folder: Path, n: int) -> Path:
    """Vectors of one zero, which take no room on the disk."""
    path = folder / "base.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (n, 1)})
        file.truncate(file.tell() + n)
    return path


@pytest.mark.parametrize("plan", ["all", "near"])
def test_the_graph_is_that_of_ids_of_32_bits(tmp_path, plan):
    base, graphs = make_flat_base(tmp_path, 1500), []
    for id_bytes in (4, 8):
        work = tmp_path / f"work{id_bytes}"
        gnnd.distributed.start(base, work, K, shards=4, plan=plan, id_bytes=id_bytes)
        gnnd.distributed.work(work, threads=1)
        graph = check_finished(work, base)
        graphs.append((graph.to_graph().ids.tolist(), graph.to_graph().distances.tolist(), graph.measured))
        manifest = json.loads((work / "manifest.json").read_bytes())
        assert manifest.get("id_bytes", 4) == id_bytes
        assert sum(shard["lists"]["bytes"] for shard in manifest["shards"]) > 1500 * K * (4 + id_bytes)
    assert graphs[0] == graphs[1]
    with pytest.raises(OSError, match="bytes of an id"):
        gnnd.distributed.start(base, tmp_path / "work8", K, shards=4, plan=plan)
    assert gnnd.build_sharded(base, tmp_path / "work8", K, shards=4, plan=plan, id_bytes=8, resume=True).n == 1500


def test_what_is_damaged_is_made_anew(tmp_path):
    """Of the files of wide ids, too."""
    base, work = make_flat_base(tmp_path, 1500), tmp_path / "work"
    gnnd.distributed.start(base, work, K, shards=4, id_bytes=8)
    harmed = []

    def harm(record):
        if record["tasks_done"] in (4, 7):
            path = max(work.glob("lists-*"))
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
            harmed.append(path)

    gnnd.distributed.work(work, progress=harm)
    assert len(harmed) >= 2
    check_finished(work, base)


def test_as_many_bytes_as_there_must_be(tmp_path):
    """Of a base of more rows than 32 bits tell apart."""
    n = 2**31 + 6
    base = make_sparse_base(tmp_path, n)
    with pytest.raises(ValueError, match="id_bytes = 4 of 2147483654 vectors"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=4, id_bytes=4)
    with pytest.raises(ValueError, match="two shards may have 2147483647 at most"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=2)
    with pytest.raises(ValueError, match="id_bytes = 5"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=4, id_bytes=5)
    for name in ("all", "near"):
        gnnd.distributed.start(base, tmp_path / name, K, shards=4, plan=name)
        plan = read_plan(Folder(tmp_path / name))
        assert plan is not None and plan.manifest.id_bytes == 8 and plan.begin(4) == n
        assert plan.is_ordered == (name == "near")
        assert plan.objects().max() >= 2**31 - 2**24


def test_near_pairs_of_more_rows_than_one_process_orders(tmp_path):
    base, work = make_sparse_base(tmp_path, 2**32), tmp_path / "work"
    with pytest.raises(ValueError, match="plan = near of 4294967296 vectors; allowed are 4294967295"):
        gnnd.build_sharded(base, work, K, shards=8, plan="near")
    gnnd.distributed.start(base, work, K, shards=8, plan="near")
    plan = read_plan(Folder(work))
    assert plan is not None and plan.is_ordered and plan.n == 2**32


@pytest.mark.parametrize("id_bytes", [4, 8])
def test_an_order_is_of_the_type_of_ids(tmp_path, id_bytes):
    """Those of 64 bits are whole, whatever they are."""
    base, work = begin(tmp_path, shards=3, n=900, id_bytes=id_bytes)
    hands = carrier(base, work)
    do_until(hands, "build")
    order = hands._rules.cut.rows()
    assert order.dtype == hands.plan.id_type and (np.sort(order) == np.arange(900)).all()
    assert sum(path.stat().st_size for path in work.glob("rows-*.bin")) == 900 * id_bytes
    most = 2 ** (8 * id_bytes - 1) - 1
    for part in range(3):
        name = Task("divide", part).records[0]
        rows = hands.records.load_array(name, hands.plan.id_type, 300)
        hands.records.withdraw(name)
        hands.records.save_array(name, most - rows, 0)
    np.testing.assert_array_equal(carrier(base, work)._rules.cut.rows(), most - order)


def begin_many(folder: Path) -> tuple[Path, Path, Plan]:
    """Near pairs of more rows than 32 bits tell apart, in as many shards as there may be."""
    base, work = make_sparse_base(folder, MANY), folder / "work"
    gnnd.distributed.start(base, work, 1, shards=1024, plan="near", recall_objects=16)
    plan = read_plan(Folder(work))
    assert plan is not None
    return base, work, plan


def test_a_range_of_rows_past_31_bits_is_divided(tmp_path, monkeypatch):
    """The last one, in turn among the first two shards and the last."""
    base, work, plan = begin_many(tmp_path)
    hands, last = carrier(base, work), 1023
    first, count = plan.begin(last), plan.rows(last)
    cells = (np.arange(count) % 3).astype(np.uint16)
    zeros = np.zeros((count, 1), np.uint8)
    hands.records.save_array(f"cells-{last:05d}", cells, 0, sizes=[], sum=sum_of(zeros))
    order = hands._rules.cut
    monkeypatch.setattr(order, "_next_in_cells", lambda _: np.array([0, plan.begin(1), first]))
    hands.do(Task("divide", last))
    rows = hands.records.load_array(f"rows-{last:05d}", np.int64, count)
    np.testing.assert_array_equal(rows, np.concatenate([np.arange(first + cell, MANY, 3) for cell in range(3)]))
    about = hands.records.read(f"parts-{last:05d}").about
    assert about["counts"] == [len(cells[cell::3]) for cell in (0, 1)] + [0] * 1021 + [len(cells[2::3])]


def test_rows_past_31_bits_are_restored(tmp_path, monkeypatch):
    """From an order nearly all of which is not there: the last rows of the base are the last ones of two shards, and
    each has the next one as its neighbour."""
    base, work, plan = begin_many(tmp_path)
    hands, result, holders = carrier(base, work), 1023, (3, 1000)
    first, count = plan.begin(result), plan.rows(result)
    rows = np.arange(count)
    places = np.array([plan.begin(holder + 1) for holder in holders])[rows % 2] - (count + 1) // 2 + rows // 2
    with open(tmp_path / "order", "wb+") as file:
        file.truncate(8 * MANY)
        memory = mmap.mmap(file.fileno(), 8 * MANY)
    memory.madvise(mmap.MADV_RANDOM)  # otherwise what is looked at would be read with all around it
    order = np.frombuffer(memory, np.int64)
    order[places] = first + rows
    for side, holder in enumerate(holders):
        ids, distances = new_graph(plan.rows(holder), 1, plan.id_type)
        ids[:], distances[:] = -1, 2
        ids[places[side::2] - plan.begin(holder), 0] = np.roll(places, -1)[side::2]
        hands.records.save(f"lists-{holder:05d}.0000", (ids, distances), MANY, 0, 0)
    monkeypatch.setattr(hands._rules.cut, "rows", lambda: order)
    hands.do(Task("restore", result))
    ids, distances = hands.records.load_lists(f"result-{result:05d}", result)
    np.testing.assert_array_equal(ids[:, 0], first + np.roll(rows, -1))
    assert ids.min() > 2**31 and (distances == 2).all()


def test_an_order_that_is_none(tmp_path):
    base, work = begin(tmp_path, shards=3, n=900, id_bytes=8)
    hands = carrier(base, work)
    do_until(hands, "restore")
    order, plan = hands._rules.cut.rows(), hands.plan
    schedule = hands.records.state().schedule

    def restore(rows):
        def lists(shard):
            record = hands.records.read(schedule.last_lists(shard))
            return str(work / record.file), record.size, record.checksum

        to = new_graph(300, K, plan.id_type)
        _native.restore_rows(plan.manifest, rows, 1, lists, parts(to, plan.metric), 1)
        return to[0].tolist()

    expected = restore(order)
    assert restore(order.astype(np.int32)) == expected
    with pytest.raises(ValueError, match="an order of other rows"):
        restore(order[1:])
    with pytest.raises(TypeError):
        restore(order.astype(np.float64))
    for wrong in (0, 2**32 + 450, -1):
        altered = order.copy()
        altered[order == 450] = wrong
        with pytest.raises(OSError, match="no order of the base"):
            restore(altered)


def test_a_task_holds_the_wide_order(tmp_path):
    _, _, plan = begin_many(tmp_path)
    lists = -(-MANY // 1024) * 12
    assert plan.task_bytes == 8 * MANY + lists  # a merge of shards so small takes less


def test_as_many_shards_as_the_memory_and_32_bits_allow(tmp_path):
    """Of wide ids more, since lists take more; of near pairs the order counts, too."""
    _, _, plan = begin_many(tmp_path)
    about, params = plan.manifest.base, plan.manifest.params
    counts = [1, 2, 3, 128, 512, 1024]
    assert counts_that_fit(counts, 1e15, about, params, "all", 0) == [3, 128, 512, 1024]
    assert counts_that_fit(counts, plan.task_bytes, about, params, "near", 0) == [1024]
    assert counts_that_fit(counts, 0, about, params, "near", 0) == [1024]  # none does: the most shards there are
    small = {**about, "n": 1000, "bytes": 1000}
    held = 2 * 500 * (1 + 8 * (plan.manifest.local_columns + 1) + 2 * 8)
    assert counts_that_fit([2, 4], held, small, params, "all", 0) == [2, 4]
    assert counts_that_fit([2, 4], held, small, params, "all", 8) == [4]
