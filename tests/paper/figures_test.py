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

SCRIPT = REPOSITORY / "contrib/plots/paper_figures.py"
BASE = {
    "status": "ok", "tool": "x", "dataset": "set", "n": 1000, "d": 8, "dtype": "float32", "metric": "l2", "k": 10,
    "params": "", "about": {}, "host_cpu": "cpu", "cores": 2, "commit": "c", "recall_source": "100 objects",
}  # fmt: skip


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

    def write(self, name: str, records: list[dict]) -> Path:
        """A result file."""
        path = self.folder / name
        path.write_text("".join(json.dumps({**BASE, "key": str(at), **more}) + "\n" for at, more in enumerate(records)))
        return path

    def draw(self, name: str, records: list[dict]) -> list[dict]:
        """The panels of the one figure that is drawn from these records."""
        path = self.write(name, records)
        command = [sys.executable, SCRIPT, path, "-o", self.folder / "figures"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (figure,) = done.stdout.split()
        return json.loads(Path(figure).with_suffix(".json").read_text())

    def test_all_machines_and_commits_are_told(self) -> None:
        one, two = {**BASE, "date": "2026-01-02"}, {**BASE, "commit": "b", "date": "2026-01-01", "gpu": "GPU"}
        self.assertEqual(paper_panels.where([one, one]), "cpu, 2 cores; c")
        self.assertEqual(paper_panels.where([one, two]), "cpu, 2 cores; GPU; cpu, 2 cores; b, c")

    def test_crossing_without_gnnd(self) -> None:
        def cost(n: int, series: str, seconds: float) -> dict:
            return {"n": n, "series": series, "buildtime": seconds, "recall": {"10": 0.97}}

        others = [cost(n, "FAISS flat", n / 100) for n in (100, 1000)]
        (panel,) = self.draw("crossing.jsonl", others)
        self.assertIn("GNND was not measured", panel["title"])
        self.assertEqual([line["label"] for line in panel["lines"]], ["FAISS flat"])
        own = [cost(100, "GNND", 2.0), cost(1000, "GNND", 5.0)]
        (panel,) = self.draw("crossing.jsonl", [*others, *own])
        self.assertIn("cheaper than FAISS flat from n = 316 on", panel["title"])
        self.assertIn("at least 0.9700", panel["title"])
        (panel,) = self.draw("crossing.jsonl", [*others, cost(50, "GNND", 2.0)])
        self.assertNotIn("cheaper", panel["title"])

    def test_convergence_leaves_out_sets_without_an_exact_graph(self) -> None:
        series = {"series": "GNND", "buildtime": 1.0, "phi": [4.0, 2.2], "phi_graph": 2.2}
        exact = {"series": "all pairs (gnnd)", "buildtime": 1.0, "phi_graph": 2.0}
        panels = self.draw("convergence.jsonl", [series, exact, {**series, "dataset": "other"}])
        self.assertEqual(len(panels), 1)
        np.testing.assert_allclose(panels[0]["lines"][0]["y"], [1.0, 0.1])
        path = self.write("convergence.jsonl", [series])
        command = [sys.executable, SCRIPT, path, "-o", self.folder / "figures"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no exact graph", done.stderr)

    def test_few_steps_are_compared_where_all_of_them_get_to(self) -> None:
        def step(number: int, recall: float) -> dict:
            found = {"recall": {"10": recall}, "buildtime": 1.0}
            return {"series": f"step {number}", "about": {"step": number}, **found}

        for recalls, target in (([0.995, 0.99, 0.96], "0.95"), ([0.995, 0.99, 0.991, 0.96, 0.9], "0.99")):
            path = self.write("ablation.jsonl", [step(at, recall) for at, recall in enumerate(recalls, 1)])
            subprocess.run(
                [sys.executable, SCRIPT, path, "-o", self.folder / "figures"], check=True, capture_output=True
            )
            (panel,) = json.loads((self.folder / "figures/ablation_waterfall.json").read_text())
            self.assertIn(f"Recall@10 of {target} or more", panel["xlabel"])

    def test_files_that_are_no_results_are_named(self) -> None:
        other = {"million.jsonl": '{"key": 1}\n', "crossing.jsonl": "", "nonsense.jsonl": "{}\n", "merge.jsonl": "x\n"}
        for name, text in other.items():
            (self.folder / name).write_text(text)
            done = subprocess.run(
                [sys.executable, SCRIPT, self.folder / name, "-o", self.folder / "figures"],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(name, done.stderr)
        missing = subprocess.run(
            [sys.executable, SCRIPT, self.folder / "million2.jsonl", "-o", self.folder],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(missing.returncode, 1)

    def test_figures_tell_their_numbers(self) -> None:
        self.write(
            "million.jsonl",
            [
                {"series": series, "buildtime": seconds, "recall": {"10": recall}}
                for series, seconds, recall in [("A", 1.0, 0.9), ("A", 2.0, 0.99), ("A", 3.0, 0.95), ("B", 0.5, 1.0)]
            ],
        )
        command = [sys.executable, str(SCRIPT), str(self.folder), "-o"]
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
