# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""contrib/plots draws what is in benchs/paper's result files, and names files that are none."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "contrib/plots"))

import paper_panels  # noqa: E402
import style  # noqa: E402


class Figures(unittest.TestCase):
    """Fronts, crossings, and files that are no results."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def test_pareto(self) -> None:
        points = [(0.9, 1.0), (0.95, 2.0), (0.93, 3.0), (0.8, 1.5), (0.95, 2.5)]
        self.assertEqual(style.pareto(points), [(0.9, 1.0), (0.95, 2.0)])
        self.assertEqual(style.pareto([(0.5, 9.0), (0.9, 5.0), (0.6, 4.0)], True), [(0.5, 9.0), (0.9, 5.0)])

    def test_crossing(self) -> None:
        self.assertAlmostEqual(paper_panels.crossing_point({10: 10.0, 1000: 1000.0}, {10: 1.0, 1000: 10000.0}), 100)
        self.assertIsNone(paper_panels.crossing_point({10: 1.0, 100: 2.0}, {10: 2.0, 100: 5.0}))

    def test_files_that_are_no_results_are_named(self) -> None:
        script = REPOSITORY / "contrib/plots/paper_figures.py"
        other = {"million.jsonl": '{"key": 1}\n', "crossing.jsonl": "", "nonsense.jsonl": "{}\n", "merge.jsonl": "x\n"}
        for name, text in other.items():
            (self.folder / name).write_text(text)
            done = subprocess.run(
                [sys.executable, script, self.folder / name, "-o", self.folder / "figures"],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(name, done.stderr)
        missing = subprocess.run(
            [sys.executable, script, self.folder / "million2.jsonl", "-o", self.folder],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(missing.returncode, 1)

    def test_figures_tell_their_numbers(self) -> None:
        base = {
            "status": "ok",
            "tool": "x",
            "dataset": "set",
            "n": 1000,
            "d": 8,
            "dtype": "float32",
            "metric": "l2",
            "k": 10,
            "params": "",
            "about": {},
            "host_cpu": "cpu",
            "cores": 2,
            "commit": "c",
            "recall_source": "100 objects",
        }
        lines = [
            {**base, "key": str(at), "series": series, "buildtime": seconds, "recall": {"10": recall}}
            for at, (series, seconds, recall) in enumerate(
                [("A", 1.0, 0.9), ("A", 2.0, 0.99), ("A", 3.0, 0.95), ("B", 0.5, 1.0)]
            )
        ]
        (self.folder / "million.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        command = [sys.executable, str(REPOSITORY / "contrib/plots/paper_figures.py"), str(self.folder), "-o"]
        for folder in ("one", "two"):
            subprocess.run([*command, str(self.folder / folder)], check=True, capture_output=True)
        one, two = ((self.folder / folder / "million_time_recall.svg").read_bytes() for folder in ("one", "two"))
        self.assertEqual(one, two)
        (panel,) = json.loads((self.folder / "one/million_time_recall.json").read_text())
        shown = {(line["label"], line["gid"]): list(zip(line["x"], line["y"], strict=True)) for line in panel["lines"]}
        np.testing.assert_allclose(shown[("A", "front")], [(0.1, 1.0), (0.01, 2.0)], rtol=1e-9)
        self.assertEqual(sum(map(len, shown.values())), 4)
        self.assertEqual((panel["xscale"], panel["yscale"], panel["ylabel"]), ("log", "log", "time (s)"))


if __name__ == "__main__":
    unittest.main()
