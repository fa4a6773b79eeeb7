# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""The points of benchs/paper: how they are declared, which are measured, and what happens to those that fail."""

from __future__ import annotations

import sys
import unittest
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchs/paper"))

import datasets  # noqa: E402
import drivers  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402
import tools  # noqa: E402
from in_folder import InFolder  # noqa: E402
from points import Context, Point  # noqa: E402


def point(series: str, configuration: str = "", **more) -> Point:
    """Of a set that needs no file."""
    return Point(series, datasets.Dataset("set", "hard:gauss:{n}:8", 100), "fake", configuration, k=10, **more)


class FakeLibrary:
    """A library that has all sets."""

    @staticmethod
    def path(_data: datasets.Dataset) -> Path:
        return Path("nowhere")

    @staticmethod
    def describe(_data: datasets.Dataset) -> dict:
        return {"d": 8, "dtype": "float32", "dimension": 7.5, "stated_dimension": 8.0}


class FakeTools:
    """Tools that are all there."""

    late = ""
    no_time_is_left = False

    @staticmethod
    def missing(_tool: str) -> str:
        return ""


class Running(InFolder):
    """Points that are there are not measured again; those that fail are recorded, and the rest goes on."""

    def setUp(self) -> None:
        super().setUp()
        self.calls: list[list[str]] = []

        def fake(_tools, points: list[Point], _path: Path) -> dict[str, dict]:
            self.calls.append([p.configuration for p in points])
            if any("bad" in p.configuration for p in points):
                raise tools.ToolError("fake: no")
            return {
                p.key: {
                    **results.timed([0.2, 0.1, 0.4]),
                    "recall": {"1": 1.0, "10": 0.9, "k": 0.9},
                    "threads": 2,
                    "recall_source": "100 objects",
                }
                for p in points
            }

        drivers.TOOLS["fake"] = fake
        self.addCleanup(drivers.TOOLS.pop, "fake")
        self.said: list[str] = []
        self.tools = FakeTools()

    def run_points(self, points: list[Point], retry: bool = False) -> tuple[bool, results.Store]:
        """As run.py does."""
        store = results.Store(self.folder, "million")
        good = runner.Runner(self.tools, FakeLibrary(), False, retry, self.said.append).run(points, store)
        return good, store

    def test_what_was_measured_before_a_command_was_ended_is_kept(self) -> None:
        def slow(_tools, points: list[Point], _path: Path) -> dict[str, dict]:
            self.calls.append([p.configuration for p in points])
            done = [p for p in points if p.configuration != "slow"]
            done = done[: [p.configuration for p in points].index("slow")] if len(done) < len(points) else done
            self.tools.late = "slow: took longer than 9 s" if len(done) < len(points) else ""
            return {p.key: {**results.timed([0.1]), "recall": {}, "recall_source": "none"} for p in done}

        drivers.TOOLS["fake"] = slow
        points = [point("A", text) for text in ("a", "slow", "b")]
        good, store = self.run_points(points)
        self.assertFalse(good)
        self.assertEqual(self.calls, [["a", "slow", "b"], ["b"]])
        self.assertEqual([store.records[p.key]["status"] for p in points], ["ok", "failed", "ok"])
        self.assertIn("took longer", store.records[points[1].key]["reason"])

    def test_without_time_nothing_is_begun_and_a_later_command_goes_on(self) -> None:
        self.tools.no_time_is_left = True
        good, store = self.run_points([point("A", "a")])
        self.assertTrue(good)
        self.assertEqual(self.calls, [])
        self.assertEqual([r["reason"] for r in store.records.values()], ["no time was left (--seconds)"])
        self.tools.no_time_is_left = False
        _, store = self.run_points([point("A", "a")])
        self.assertEqual([r["status"] for r in store.records.values()], ["ok"])

    def test_a_failing_point_is_recorded_and_the_rest_goes_on(self) -> None:
        points = [point("A", "a"), point("A", "bad"), point("B", "b"), point("C", "c", why_not="no switch: x")]
        good, store = self.run_points(points)
        self.assertFalse(good)
        self.assertEqual([store.records[p.key]["status"] for p in points], ["ok", "failed", "ok", "skipped"])
        self.assertEqual(store.records[points[1].key]["reason"], "fake: no")
        record = store.records[points[0].key]
        self.assertEqual((record["buildtime"], round(record["spread"], 6), record["repeats"]), (0.2, 0.3, 3))
        self.calls.clear()
        self.run_points(points)
        self.assertEqual(self.calls, [])
        self.run_points(points, retry=True)
        self.assertEqual(self.calls, [["bad"]])
        rows = table.markdown("t", "c", list(store.records.values()))
        self.assertIn("failed: fake: no", rows)
        self.assertIn("8, 7.5", rows)

    def test_new_points_alone_are_measured_and_a_cut_line_is_passed_over(self) -> None:
        self.run_points([point("A", "a")])
        with (self.folder / "million.jsonl").open("a") as file:
            file.write('{"key": "cut')
        _, store = self.run_points([point("A", "a"), point("A", "b")])
        self.assertEqual(self.calls, [["a"], ["b"]])
        self.assertEqual(len(results.load(store.path)), 2)

    def test_hdf5_and_csv_hold_what_the_line_does(self) -> None:
        _, store = self.run_points([point("A, x", "seed=7")])
        record = next(iter(store.records.values()))
        self.assertEqual(record["seed"], 7)
        ids = np.arange(6, dtype=np.int32).reshape(2, 3)
        path = self.folder / "one.h5"
        results.write_hdf5(path, record, (ids, ids.astype(np.float32)))
        with h5py.File(path) as file:
            self.assertEqual((file.attrs["algo"], file.attrs["recall@10"], file.attrs["k"]), ("A, x", 0.9, 10))
            np.testing.assert_array_equal(file["knns"][:], ids + 1)
        paths = results.export_csv([record], self.folder / "csv")
        self.assertEqual([p.name for p in paths], ["A  x,base.csv", "A  x,base,k10,bs100,raw.csv"])
        self.assertIn(",0.9,500.0,0.2,", paths[1].read_text())

    def test_a_tool_that_hangs_or_is_none_fails(self) -> None:
        slow = tools.Tools(self.folder, self.folder, "cpu", 5, False)
        lines = slow.call(["sh", "-c", """echo '{"a": 1}'; exec sleep 600"""])
        self.assertEqual((lines, slow.late), ([{"a": 1}], "sh: took longer than 5 s"))
        self.assertEqual((slow.call(["true"]), slow.late, slow.no_time_is_left), ([], "", False))
        slow.until = 0
        self.assertTrue(slow.no_time_is_left)
        slow.until = float("inf")
        with self.assertRaisesRegex(tools.ToolError, "ended with status 1"):
            slow.call(["false"])
        self.assertIn("is not built", slow.missing("build_bench"))
        (self.folder / "bin").mkdir()
        for said, version in (("gnnd 1.0 (FAISS 1.7.3)", "1.7.3"), ("gnnd 1.0 (no FAISS)", "unknown")):
            (self.folder / "bin/gnnd").write_text(f"#!/bin/sh\necho '{said}'\n")
            (self.folder / "bin/gnnd").chmod(0o755)
            self.assertEqual(tools.Tools(self.folder, self.folder, "cpu", 5, False).faiss, version)
        self.assertEqual(tools._objects('x {"a": 1}\n{"b":\n {"c": 2}} {bad'), [{"a": 1}, {"b": {"c": 2}}])


class Declarations(InFolder):
    """The points that the experiments ask for."""

    def test_points_are_left_out_by_tool_and_by_set(self) -> None:
        def why(*options: str) -> str:
            return run.left_out(replace(point("A", "a"), tool="gnnd"), run.arguments(["million", *options]))

        self.assertEqual(why(), "")
        self.assertEqual(why("--without", "build_bench"), "")
        self.assertEqual(why("--set", "se", "--set", "other"), "")
        self.assertEqual(why("--set", "other"), "left out by --set")
        self.assertEqual(why("--without", "gnnd", "--set", "se"), "left out by --without")
        self.assertEqual(why("--series", "A", "--series", "B"), "")
        self.assertEqual(why("--series", "B"), "left out by --series")
        self.assertEqual(why("--params", "x", "--params", ""), "")
        self.assertEqual(why("--params", "no such end"), "left out by --params")

    def test_a_point_is_known_by_its_rows_and_not_by_what_is_known_about_them(self) -> None:
        data = datasets.Dataset("set", "mix:/here/a.u8bin:{n}", 100)
        one = Point("A", data, "gnnd")
        same = replace(data, source="mix:/there/a.u8bin:{n}", hard=True, stated=3.0)
        self.assertEqual(one.key, replace(one, data=same, about={"x": 1}, why_not="no").key)
        for other in ({"n": 101}, {"source": "file:/here/a.u8bin"}, {"source": "mix:/here/b.u8bin:{n}"}):
            self.assertNotEqual(one.key, replace(one, data=replace(data, **other)).key)

    def test_all_points_differ_and_have_tools(self) -> None:
        from experiments import experiments

        library = datasets.Library(None, [], self.folder, lambda text: None)
        for gpu in (False, True):
            for quick in (False, True):
                for name, experiment in experiments().items():
                    points = experiment.points(Context(library, gpu, quick, 1_000_000))
                    keys = [p.key for p in points]
                    self.assertEqual(len(set(keys)), len(keys), name)
                    self.assertTrue(all(p.tool in drivers.TOOLS for p in points), name)
                    if name not in ("bootstrap", "large"):
                        self.assertTrue(any(p.data.hard for p in points) and any(not p.data.hard for p in points), name)


if __name__ == "__main__":
    unittest.main()
