# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""benchs/paper reads the lines of tools that need a GPU, or much time: here scripts print such lines."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchs/paper"))

import drivers  # noqa: E402
import index_drivers  # noqa: E402
import tools  # noqa: E402
from datasets import Dataset  # noqa: E402
from points import Point  # noqa: E402

DATA = Dataset("set", "hard:gauss:{n}:8", 1000)
# As benchs/gpu_bench.cpp prints it, of a build with two iterations.
GPU_LINE = {
    "data": "set.fbin", "n": 1000, "d": 8, "dtype": "f32", "metric": "l2", "k": 64, "configuration": "p=16",
    "where": "device", "recall@1": 1.0, "recall@10": 0.99, "recall@64": 0.97, "recall_objects": 500, "phi_graph": 5.0,
    "seconds": 0.05, "seconds_least": 0.04, "seconds_most": 0.07, "iterations": 2, "stop": "converged",
    "allocated_bytes": 1000, "graph_bytes": 512000, "device": "NVIDIA H200", "cuda": "13.0", "driver_cuda": "13.0",
    "commit": "abc", "iteration_ms": [1, 2, 3], "phi": [9.0, 6.0, 5.1], "distances": [1, 2, 3],
}  # fmt: skip


class Drivers(unittest.TestCase):
    """Lines become fields of results."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        for name in ("benchs", "bin"):
            (self.folder / name).mkdir()
        self.script("../bin/gnnd", "gnnd 1.2.3 (FAISS 9.8.7, CUDA 13.1)")
        self.tools = tools.Tools(self.folder, self.folder, "cuda:0", 60, False)

    def script(self, name: str, text: str) -> None:
        """A program of the build folder that prints this, and keeps what it was called with."""
        path = self.folder / "benchs" / name
        path.write_text(f'#!/bin/sh\necho "$@" >{self.folder}/called-{path.name}\necho {shlex.quote(text)}\n')
        path.chmod(0o755)

    def test_gpu_bench(self) -> None:
        self.script("gpu_bench", json.dumps(GPU_LINE))
        point = Point("GNND", DATA, "gpu_bench", "p=16", repeat=5, queries=500)
        found = drivers.gpu_bench(self.tools, [point], Path("set.fbin"))[point.key]
        self.assertEqual((found["buildtime"], found["repeats"], found["peak_bytes"]), (0.05, 5, 1000))
        self.assertAlmostEqual(found["spread"], 0.03)
        self.assertEqual(found["recall"], {"1": 1.0, "10": 0.99, "64": 0.97, "k": 0.97})
        self.assertEqual((found["device"], found["phi"], found["phi_graph"]), ("NVIDIA H200", [9.0, 6.0, 5.1], 5.0))
        self.assertEqual((found["faiss"], found["cuda"]), ("9.8.7", "13.0"))
        called = (self.folder / "called-gpu_bench").read_text()
        self.assertEqual(called.split(), shlex.split("set.fbin p=16 -k 64 --metric l2 --repeat 5 --queries 500"))

    def test_a_program_that_does_not_know_its_commit_says_none(self) -> None:
        self.script("gpu_bench", json.dumps({**GPU_LINE, "commit": "unknown"}))
        point = Point("GNND", DATA, "gpu_bench", "p=16", repeat=5, queries=500)
        found = drivers.gpu_bench(self.tools, [point], Path("set.fbin"))[point.key]
        self.assertNotIn("commit", found)  # the runner's own stands

    def test_a_line_that_is_missing_is_an_error(self) -> None:
        self.script("gpu_bench", json.dumps(GPU_LINE))
        with self.assertRaisesRegex(tools.ToolError, "nothing about p=32"):
            drivers.gpu_bench(self.tools, [Point("GNND", DATA, "gpu_bench", "p=32")], Path("set.fbin"))

    def test_what_a_tool_printed_before_it_was_ended_is_kept(self) -> None:
        path = self.folder / "benchs/gpu_bench"
        path.write_text(f"#!/bin/sh\necho {shlex.quote(json.dumps(GPU_LINE))}\nexec sleep 600\n")
        path.chmod(0o755)
        self.tools.timeout = 5  # for a shell to start on a busy machine
        points = [Point("GNND", DATA, "gpu_bench", text) for text in ("p=16", "p=32")]
        found = drivers.gpu_bench(self.tools, points, Path("set.fbin"))
        self.assertEqual(list(found), [points[0].key])
        self.assertIn("longer than", self.tools.late)

    def test_gnnd_is_evaluated_once(self) -> None:
        told = {"seconds": 2.0, "peak_memory_bytes": 7, "recall": 0.9, "recalls": {"1": 1.0, "10": 0.95, "64": 0.9}}
        self.script("../bin/gnnd", json.dumps({**told, "queries": 100}))
        point = Point("FAISS flat", DATA, "gnnd", "--method exact", repeat=1, queries=100)
        self.tools.faiss, self.tools.cuda = "9.8.7", "13.1"  # what this stand-in does not tell
        found = drivers.gnnd(self.tools, [point], Path("set.fbin"))[point.key]
        self.assertEqual(found["recall"], {"1": 1.0, "10": 0.95, "64": 0.9, "k": 0.9})
        self.assertEqual((found["device"], found["cuda"], found["faiss"]), ("cuda:0", "13.1", "9.8.7"))
        self.assertIn("eval", (self.folder / "called-gnnd").read_text())

    def test_index_bench(self) -> None:
        line = {"build_seconds": 2.0, "build_cpu_seconds": 3.0, "threads": 4, "peak_bytes": 5, "qps_a_core": 1.0}
        lines = [
            json.dumps({**line, "index": index, "beam": 16, "recall": 0.9, "qps": 2.0})
            for index in ("GNND64,NSG32", "NSG32")
        ]
        self.script("index_bench", "\n".join(lines))
        points = [Point("index", DATA, "index_bench", text, k=10) for text in ("GNND64,NSG32", "NSG32")]
        found = drivers.index_bench(self.tools, points, Path("set.fbin"))
        own, other = (found[point.key] for point in points)
        self.assertEqual((own["device"], own["cuda"], own["peak_bytes"], own["threads"]), ("cuda:0", "13.1", 5, 4))
        self.assertEqual((other["device"], "cuda" in other, other["faiss"]), ("cpu", False, "9.8.7"))

    def test_cagra(self) -> None:
        searches = [
            {"itopk_size": width, "recall@10": recall, "queries_per_second": qps}
            for width, recall, qps in ((32, 0.9, 2e6), (64, 0.98, 1e6))
        ]
        lines = [
            {"rows": 900, "d": 8, "links": 32, "from": "to_cagra", "k": 64, "ready_seconds": 0.2, "searches": searches},
            {"rows": 900, "d": 8, "links": 32, "from": "IVF_PQ", "ready_seconds": 4.0, "searches": searches[:1]},
        ]
        script = self.folder / "python_cagra.py"
        script.write_text(
            f"import json, sys\nopen({str(self.folder / 'called')!r}, 'w').write(' '.join(sys.argv[1:]))\n"
            f"for line in {lines!r}:\n    print(json.dumps(line))\n"
        )
        points = [
            Point("CAGRA", DATA, "cagra", text, k=10, repeat=1, queries=100, options=("--widths", "32,64"))
            for text in ("links=32,from=to_cagra,k=64", "links=32,from=IVF_PQ")
        ]
        (self.folder / "faiss.py").write_text('__version__ = "9.5"\n')
        path = mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder)})
        with path, mock.patch.object(index_drivers, "CAGRA", script):
            found = drivers.cagra(self.tools, points, Path("set.fbin"))
            with self.assertRaisesRegex(tools.ToolError, "nothing about links=64"):
                drivers.cagra(self.tools, [replace(points[0], configuration="links=64,from=IVF_PQ")], Path("set.fbin"))
        own, other = (found[point.key] for point in points)
        self.assertEqual((own["buildtime"], own["recall"], other["buildtime"]), (0.2, {"10": 0.98}, 4.0))
        self.assertEqual(own["faiss"], "9.5")
        self.assertEqual(own["curve"][1], {"beam": 64, "recall": 0.98, "qps": 1e6})
        self.assertEqual(
            (self.folder / "called").read_text().split(),
            shlex.split("set.fbin --rows 1000 --queries 100 --widths 32,64 --degrees 64"),
        )
        self.assertIn("faiss-gpu-cuvs", self.tools.missing("cagra"))

    def test_sharded_plan_gives_the_fastest_that_fits(self) -> None:
        table = "| shards | pairs | on the device | seconds |\n|---|---|---|---|\n| 16 | does not fit the device |\n"
        self.script("sharded_plan", table + "| 32 | 496 | 4 | 2931.5 |\n| 40 | 780 | 5 | 3100.0 |")
        point = Point("plan", DATA, "sharded_plan", "--n 1000", about={"n": 1000})
        found = drivers.sharded_plan(self.tools, [point], Path())[point.key]
        self.assertEqual((found["buildtime"], found["shards"], found["predicted"]), (2931.5, 32, True))
        self.script("sharded_plan", table)
        with self.assertRaisesRegex(tools.ToolError, "no number of shards fits"):
            drivers.sharded_plan(self.tools, [point], Path())


if __name__ == "__main__":
    unittest.main()
