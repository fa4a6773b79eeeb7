# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""Results are collected from several runs, and those of benchs/results are as check.py demands."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchs/paper"))

import check  # noqa: E402
import collect  # noqa: E402
import results  # noqa: E402
from in_folder import InFolder  # noqa: E402


class Collecting(InFolder):
    """Results of several runs become those of one folder."""

    def record(self, name: str, status: str = "ok", **more) -> dict:
        """Of a point called so."""
        fields = {"key": name, "series": name, "dataset": "set", "n": 100, "metric": "l2", "k": 10, "params": name}
        run = {"status": status, "buildtime": 1.0, "recall": {"10": 0.9}, "cores": 2, "threads": 2, "experiment": "x"}
        return {**fields, **run, "recall_source": "100 objects", "host_cpu": "cpu", "commit": "c", "about": {}, **more}

    def store(self, folder: str, *records: dict) -> Path:
        """A folder of results."""
        store = results.Store(self.folder / folder, "million")
        for record in records:
            store.add(record)
        return self.folder / folder

    def test_the_last_measurement_of_each_point_is_kept(self) -> None:
        into = self.store("into", self.record("a"), self.record("b", n=50), self.record("c", "failed", reason="no"))
        one = self.store(
            "one",
            self.record("a", "skipped", reason="left out by --set"),
            self.record("b", buildtime=2.0, n=50),
            self.record("c"),
            self.record("d", "skipped", reason="no time was left (--seconds)"),
            self.record("e", "skipped", reason="x is not installed"),
        )
        self.assertEqual(collect.collect(into, [one]), ["million"])
        kept = {r["key"]: (r["status"], r["buildtime"]) for r in results.load(into / "million.jsonl")}
        self.assertEqual(kept, {"a": ("ok", 1.0), "b": ("ok", 2.0), "c": ("ok", 1.0), "e": ("skipped", 1.0)})
        self.assertEqual(list(kept), ["a", "c", "e", "b"])
        self.assertIn("x is not installed", (into / "million.md").read_text())

    def test_the_program_draws_and_refuses_what_is_no_folder(self) -> None:
        script = REPOSITORY / "benchs/paper/collect.py"
        into = self.store("into", self.record("a"))
        subprocess.run([sys.executable, script, into], check=True, capture_output=True)
        self.assertTrue((into / "figures/million_time_recall.svg").is_file())
        for arguments in ([], [into, into / "none"]):
            done = subprocess.run([sys.executable, script, *arguments], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no such folder", done.stderr)


class Committed(unittest.TestCase):
    """The results in benchs/results are as check.py demands of a run."""

    def test_every_line(self) -> None:
        paths = sorted((REPOSITORY / "benchs/results").glob("*/*.jsonl"))
        self.assertGreater(len(paths), 5)
        self.addCleanup(check.require.wrong.clear)
        for path in paths:
            for record in results.load(path):
                check.check_record(record)
        self.assertEqual(check.require.wrong, [])

    def test_a_line_without_its_seconds_is_found(self) -> None:
        self.addCleanup(check.require.wrong.clear)
        record = results.load(REPOSITORY / "benchs/results/h200/crossing.jsonl")[0]
        check.check_record({**record, "seconds": []})
        self.assertEqual(len(check.require.wrong), 1)
        self.assertIn("has no time", check.require.wrong[0])


if __name__ == "__main__":
    unittest.main()
