# SPDX-License-Identifier: MIT
"""The sets of vectors that experiments name, as files that every tool reads.

Generated ones are made by make_vectors, say their intrinsic dimension (`stated`), and have it measured: the estimate of
Levina and Bickel (2004), from the exact distances of sampled objects to their k nearest, which `gnnd exact` finds.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import formats
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "tests/data/photosift20k.u8bin"
DIMENSION_K = 100  # neighbours that the dimension is estimated from
DIMENSION_OBJECTS = 500
DIMENSION_ROWS = 10_000_000  # larger sets are not compared with


class DataError(Exception):
    """A set that cannot be had here; the message says why."""


@dataclass(frozen=True)
class Dataset:
    """A set of vectors by name."""

    name: str  # as tables and figures have it
    source: str  # file:PATH, or what make_vectors is given, {n} in the place of the number of rows
    n: int  # the first so many rows
    metric: str = "l2"
    stated: float | None = None  # intrinsic dimension by construction
    hard: bool = False  # of high intrinsic dimension, or otherwise awkward

    @property
    def key(self) -> str:
        """Its name in files' names: rows of another source have another one."""
        source = self.source.rsplit("/", 1)[-1]
        return f"{self.name.replace(' ', '-')}-{self.n}-{hashlib.sha256(source.encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Public:
    """A published set: names that its file may have, and what it must hold."""

    name: str
    patterns: tuple[str, ...]
    d: int
    least: int  # rows
    metric: str = "l2"


PUBLIC = (
    Public("photosift1m", ("photosift1m.u8bin",), 128, 1_000_000),
    Public("embeddings", ("embeddings*.fbin",), 256, 500_000),
    Public("SIFT1M", ("sift_base.fvecs", "sift-128-euclidean.hdf5", "sift1m*.fbin", "sift1m*.u8bin"), 128, 1_000_000),
    Public("GIST1M", ("gist_base.fvecs", "gist-960-euclidean.hdf5", "gist1m*.fbin"), 960, 1_000_000),
    Public("GloVe", ("glove-100-angular.hdf5", "glove*100*.fbin", "glove*100*.fvecs"), 100, 1_183_514, "cosine"),
    Public("DEEP1M", ("deep1m*.fvecs", "deep1M*.fbin", "deep1m*.fbin"), 96, 1_000_000),
    Public("SIFT10M", ("sift10m*.u8bin", "bigann*10M*.u8bin", "base.10M.u8bin", "sift10m*.bvecs"), 128, 10_000_000),
    Public(
        "DEEP10M", ("deep10M*.fbin", "deep10m*.fvecs", "base.10M.fbin", "deep-image-96-angular.hdf5"), 96, 9_990_000
    ),
    Public("SIFT1B", ("bigann_base.bvecs", "base.1B.u8bin", "sift1b*.u8bin"), 128, 1_000_000_000),
    Public("DEEP1B", ("base.1B.fbin", "deep1b*.fbin", "deep1b*.fvecs"), 96, 1_000_000_000),
)


def levina_bickel(distances: np.ndarray) -> float:
    """The mean over objects of their estimates; rows: distances (not squared) to the nearest, ascending, the object
    itself left out. Neighbours at distance 0 say nothing and are passed over."""
    estimates = []
    for row in distances:
        row = row[row > 0]
        if len(row) >= 3 and row[-1] > row[0]:
            estimates.append((len(row) - 2) / np.log(row[-1] / row[:-1]).sum())
    if not estimates:
        raise DataError("no object has three neighbours at different distances: no dimension can be estimated")
    return float(np.mean(estimates))


class Library:
    """Finds sets in folders, and makes or cuts files in the cache."""

    def __init__(self, tools: Tools, folders: list[Path], cache: Path, say=print):  # noqa: F821
        self.tools, self.folders, self.cache, self.say = tools, folders, cache, say
        cache.mkdir(parents=True, exist_ok=True)

    def find(self, name: str) -> formats.VectorFile | None:
        """The file of a published set, checked; none where no folder has one that fits."""
        public = next(set_ for set_ in PUBLIC if set_.name == name)
        for folder in self.folders:
            for pattern in public.patterns:
                for path in sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")]):
                    try:
                        file = formats.recognise(path)
                    except formats.FormatError as error:
                        self.say(f"passed over: {error}")
                        continue
                    if file.d == public.d and file.n >= public.least:
                        return file
                    self.say(f"passed over: {path} holds {file.n} x {file.d}, {name} has {public.least} x {public.d}")
        return None

    def public(self, name: str, rows: int) -> Dataset | None:
        """The first rows of a published set, where it is found."""
        file = self.find(name)
        metric = next(set_ for set_ in PUBLIC if set_.name == name).metric
        return file and Dataset(name, f"file:{file.path}", min(rows, file.n), metric)

    def photosift(self, rows: int) -> Dataset:
        """Real SIFT descriptors: photosift1m where a folder has it, else the 20,000 of the tests; of more rows than
        there are a mix is made, and named so."""
        found = self.find("photosift1m")
        base = found or formats.recognise(SAMPLE)
        if rows <= base.n:
            return Dataset("photosift", f"file:{base.path}", rows)
        return Dataset(f"photosift mix of {base.n}", f"mix:{base.path}:{{n}}", rows)

    def generated(
        self, name: str, what: str, rows: int, metric: str = "l2", stated: float | None = None, hard: bool = False
    ) -> Dataset:
        """what: as make_vectors has it, {n} for the rows."""
        return Dataset(name, what, rows, metric, stated, hard)

    def path(self, data: Dataset) -> Path:
        """A file of exactly its rows, in a format that gnnd reads."""
        if data.source.startswith("file:"):
            file = formats.recognise(Path(data.source[5:]))
            if file.n == data.n and file.is_plain:
                return file.path
            target = self.cache / f"{data.key}.{'u8bin' if file.dtype == np.uint8 else 'fbin'}"
            if file.dtype == np.int8:
                target = target.with_suffix(".i8bin")
            if not self._is_there(target, data.n):
                self.say(f"cutting {data.n:,} rows of {file.path.name}")
                formats.rewrite(file, data.n, target)
            return target
        target = self.cache / f"{data.key}.{'u8bin' if data.source.startswith('mix:') else 'fbin'}"
        if not self._is_there(target, data.n):
            self.say(f"making {data.n:,} rows of {data.name}")
            self._call([self.tools.path("make_vectors"), data.source.format(n=data.n), target])
        return target

    @staticmethod
    def _is_there(path: Path, rows: int) -> bool:
        try:
            return formats.recognise(path).n == rows
        except formats.FormatError:
            return False

    def describe(self, data: Dataset) -> dict:
        """n, d, dtype, metric, and the intrinsic dimension as stated and as measured."""
        file = formats.recognise(self.path(data))
        return {
            "dataset": data.name,
            "n": file.n,
            "d": file.d,
            "dtype": file.dtype.name,
            "metric": data.metric,
            "hard": data.hard,
            "stated_dimension": data.stated,
            **self._dimension(data, file),
        }

    def _dimension(self, data: Dataset, file: formats.VectorFile) -> dict:
        stamp = f"{file.path}:{file.path.stat().st_mtime_ns}:{data.metric}"
        known = self.cache / f"{data.key}.dimension.json"
        if known.is_file() and (kept := json.loads(known.read_text()))["of"] == stamp:
            return kept["dimension"]
        k = min(DIMENSION_K, file.n // 10)
        objects = min(DIMENSION_OBJECTS, file.n)
        dimension: dict = {"dimension": None, "dimension_k": k, "dimension_objects": objects}
        if file.n <= DIMENSION_ROWS and k >= 3:
            dimension["dimension"] = levina_bickel(self._distances(data, file, objects, k))
        known.write_text(json.dumps({"of": stamp, "dimension": dimension}))
        return dimension

    def _distances(self, data: Dataset, file: formats.VectorFile, objects: int, k: int) -> np.ndarray:
        """Of sampled objects to their k nearest others, objects x k, not squared."""
        chosen = np.sort(np.random.default_rng(1).choice(file.n, objects, replace=False))
        rows = formats.read(file, chosen)
        suffix = "u8bin" if file.dtype == np.uint8 else "i8bin" if file.dtype == np.int8 else "fbin"
        queries, found = self.cache / f"{data.key}.queries.{suffix}", self.cache / f"{data.key}.distances.fbin"
        ids = self.cache / f"{data.key}.found.ibin"
        with queries.open("wb") as out:
            np.array(rows.shape, np.int32).tofile(out)
            rows.tofile(out)
        self._call(
            [
                self.tools.path("gnnd"),
                "exact",
                file.path,
                "--queries",
                queries,
                "-k",
                str(k + 1),
                "-o",
                ids,
                "--distances",
                found,
                "--metric",
                data.metric,
            ]
        )
        values = np.fromfile(found, np.float32, offset=8).reshape(objects, k + 1)
        for path in (queries, found, ids):
            path.unlink()
        if data.metric == "cosine":  # what FAISS tells is the product of the unit vectors
            values = 2 - 2 * values
        return np.sqrt(np.maximum(np.sort(values, 1)[:, 1:], 0))  # the nearest is the object itself

    @staticmethod
    def _call(command: list) -> None:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DataError(f"{Path(str(command[0])).name}: {(done.stderr or done.stdout).strip()[-400:]}")
