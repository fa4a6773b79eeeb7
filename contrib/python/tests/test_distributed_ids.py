# SPDX-License-Identifier: MIT
"""Graphs of several processes whose ids have 64 bits."""

from __future__ import annotations

import json

import pytest

import gnnd
import gnnd.distributed
from gnnd.distributed._plan import read_plan
from gnnd.distributed._storage import Folder
from shards import K, check_finished, make_flat_base


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
    """Of a base of more rows than 32 bits tell apart, which takes no room on the disk."""
    base, n = tmp_path / "base.u8bin", 2**31 + 6
    with open(base, "wb") as file:
        file.write(n.to_bytes(4, "little") + (1).to_bytes(4, "little"))
        file.truncate(8 + n)
    with pytest.raises(ValueError, match="id_bytes = 4 of 2147483654 vectors"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=4, id_bytes=4)
    with pytest.raises(ValueError, match="two shards may have 2147483647 at most"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=2)
    with pytest.raises(ValueError, match="plan = 'near' of 2147483654"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=4, plan="near")
    with pytest.raises(ValueError, match="id_bytes = 5"):
        gnnd.distributed.start(base, tmp_path / "work", K, shards=4, id_bytes=5)
    gnnd.distributed.start(base, tmp_path / "work", K, shards=4)
    plan = read_plan(Folder(tmp_path / "work"))
    assert plan is not None and plan.manifest.id_bytes == 8 and plan.begin(4) == n
    assert plan.objects().max() >= 2**31 - 2**24
