# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""Sets of vectors for benchs/paper: their formats, their intrinsic dimension, and the folders they are found in."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import h5py
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchs/paper"))

import datasets  # noqa: E402
import formats  # noqa: E402
from in_folder import InFolder  # noqa: E402


class Formats(InFolder):
    """Files of vectors are recognised, checked, read and rewritten."""

    ROWS = np.arange(35, dtype=np.uint8).reshape(7, 5)

    def files(self) -> list[Path]:
        """The same rows in every format that holds them."""
        floats = self.ROWS.astype(np.float32)
        d = np.full((7, 1), 5, np.int32)
        paths = [
            self.write("a.u8bin", np.array([7, 5], np.int32), self.ROWS),
            self.write("b.u8bin", np.array([7, 5], np.int64), self.ROWS),
            self.write("a.i8bin", np.array([7, 5], np.int32), self.ROWS.astype(np.int8)),
            self.write("a.fbin", np.array([7, 5], np.int32), floats),
            self.write("b.fbin", np.array([7, 5], np.int64), floats),
            self.write("a.fvecs", np.hstack([d.view(np.uint8), floats.view(np.uint8)])),
            self.write("a.bvecs", np.hstack([d.view(np.uint8), self.ROWS])),
        ]
        with h5py.File(self.folder / "a.hdf5", "w") as file:
            file["train"] = floats
        return [*paths, self.folder / "a.hdf5"]

    def test_each_format_is_recognised_and_read(self) -> None:
        for path in self.files():
            with self.subTest(path.name):
                file = formats.recognise(path)
                self.assertEqual((file.n, file.d), (7, 5))
                self.assertEqual(file.is_plain, path.name not in ("b.u8bin", "b.fbin", "a.hdf5"))
                np.testing.assert_array_equal(formats.read(file, np.array([0, 3, 6])), self.ROWS[[0, 3, 6]])

    def test_first_rows_are_rewritten(self) -> None:
        for path in self.files():
            with self.subTest(path.name):
                file = formats.recognise(path)
                name = {1: "u8bin", 4: "fbin"}[file.dtype.itemsize] if file.dtype != np.int8 else "i8bin"
                target = self.folder / f"out.{name}"
                formats.rewrite(file, 4, target)
                again = formats.recognise(target)
                self.assertEqual((again.n, again.d, again.header), (4, 5, 8))
                np.testing.assert_array_equal(formats.read(again, np.arange(4)), self.ROWS[:4])
                with self.assertRaises(formats.FormatError):
                    formats.rewrite(file, 8, target)

    def test_other_sizes_are_refused(self) -> None:
        head = np.array([7, 5], np.int32)
        last = np.concatenate(
            [np.array([5], np.int32).view(np.uint8), self.ROWS[0], np.array([6], np.int32).view(np.uint8), self.ROWS[1]]
        )
        for path in (
            self.write("cut.u8bin", head, self.ROWS[:6]),
            self.write("long.u8bin", head, self.ROWS, self.ROWS),
            self.write("empty.fbin"),
            self.write("cut.fvecs", np.array([5, 1, 2], np.int32)),
            self.write("other.bvecs", last),
            self.write("none.txt", head),
            self.write("none.h5", head),
            self.folder / "missing.fbin",
        ):
            with self.subTest(path.name), self.assertRaisesRegex(formats.FormatError, path.name):
                formats.recognise(path)

    def test_graph_files_of_other_kinds_are_refused(self) -> None:
        for path in (self.write("a.gnnd", self.ROWS), self.write("b.gnnd")):
            with self.assertRaises(formats.FormatError):
                formats.read_graph(path)


class Dimension(unittest.TestCase):
    """Levina and Bickel's estimate."""

    def test_of_known_dimensions(self) -> None:
        for d in (2, 6, 12):
            x = np.random.default_rng(d).random((4000, d))
            distances = np.sqrt(((x[:200, None] - x[None]) ** 2).sum(2))
            distances.sort(1)
            found = datasets.levina_bickel(distances[:, 1:51])
            self.assertTrue(0.75 * d < found < 1.1 * d, (d, found))

    def test_zeros_are_passed_over(self) -> None:
        row = np.array([[1.0, 2.0, 3.0, 4.0]])
        with_zeros = np.array([[0.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
        self.assertEqual(datasets.levina_bickel(row), datasets.levina_bickel(with_zeros))
        with self.assertRaises(datasets.DataError):
            datasets.levina_bickel(np.zeros((3, 5)))


class Libraries(InFolder):
    """Sets in folders."""

    def library(self) -> datasets.Library:
        """Keeps what the library says, for the tests to read."""
        self.said: list[str] = []
        return datasets.Library(None, [self.folder], self.folder / "cache", self.said.append)

    def test_public_sets_are_found_and_checked(self) -> None:
        rows = np.zeros((3, 96), np.float32)
        self.write("deep1m.fbin", np.array([3, 96], np.int32), rows)
        library = self.library()
        self.assertIsNone(library.public("DEEP1M", 100))
        self.assertIn("holds 3 x 96", self.said[-1])
        self.write("deep1m.fbin", np.array([9, 96], np.int32), rows)
        self.assertIsNone(library.public("DEEP1M", 100))
        self.assertIn("do not fit", self.said[-1])
        self.write(
            "sub/deep1m_base.fvecs",
            np.hstack([np.full((1_000_000, 1), 96, np.int32), np.zeros((1_000_000, 96), np.int32)]),
        )
        found = library.public("DEEP1M", 100)
        self.assertEqual((found.name, found.n), ("DEEP1M", 100))
        path = library.path(found)
        self.assertEqual(formats.recognise(path).n, 100)

    def test_more_descriptors_than_there_are_make_a_mix(self) -> None:
        library = self.library()
        self.assertEqual(library.photosift(5000).name, "photosift")
        mixed = library.photosift(30_000)
        self.assertTrue(mixed.name.startswith("photosift mix of 20000") and mixed.source.startswith("mix:"))


if __name__ == "__main__":
    unittest.main()
