# SPDX-License-Identifier: MIT
"""The time that gnnd saves the tools that people use: scanpy's neighbours and UMAP, with gnnd and without.

    python benchs/python_tools.py [neighbors] [umap] [--device cuda] [--ways gnnd,pipnn] [--quick]

neighbors: scanpy.pp.neighbors of 1,000,000 x 50, with its default, with pynndescent's and pipnn's transformers, and
with gnnd's. umap: umap.UMAP().fit() of 100,000 x 784 with its own neighbours and with gnnd's. The rows are Gaussians
of a stated dimension that lie in more (the intrinsic dimension is the stated one), or those of --data. Prints a JSON
line for each as it comes, and a table in the end. Each way is run once on few rows before, so that nothing is
compiled within the clock. The line of a way that is not installed says so.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import peers

WARM = 9000  # rows before the clock runs: scanpy's default compares all pairs of fewer than 8,192
SAMPLE = 2000  # rows that recall and trustworthiness are measured on
Way = Callable[[np.ndarray], dict[str, Any]]


def gaussians(n: int, d: int, dimension: int) -> np.ndarray:
    """Rows around 30 centres in a subspace of so many dimensions: n x d, float32."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(30, dimension)) * 2
    axes = np.linalg.qr(random.normal(size=(d, dimension)))[0].T.astype(np.float32)
    x = np.empty((n, d), np.float32)
    for begin in range(0, n, 1 << 16):
        rows = min(1 << 16, n - begin)
        hidden = centres[random.integers(30, size=rows)] + random.normal(size=(rows, dimension))
        x[begin : begin + rows] = hidden.astype(np.float32) @ axes
    return x


def neighbors(options: argparse.Namespace) -> dict[str, tuple[str, Way]]:
    """Ways to scanpy's neighbours, by their names; of each the package that it needs."""
    k = options.neighbors

    def by(transformer: Callable[[], Any]) -> Way:
        def run(x: np.ndarray) -> dict[str, Any]:
            import scanpy

            data, made = scanpy.AnnData(x), transformer()
            start = time.perf_counter()
            scanpy.pp.neighbors(data, n_neighbors=k, use_rep="X", transformer=made)
            seconds = time.perf_counter() - start
            recall = getattr(made, "recall_", None)
            ids = peers.ids_of(data.obsp["distances"], k)  # with the rows themselves, where a transformer has them
            found, objects = peers.recalls(x, ids, SAMPLE, [k - 1], "l2")
            told = {} if recall is None else {"recall_told": recall.value}
            return {"seconds": seconds, **found, "recall_objects": objects, **told}

        return run

    def of_gnnd() -> Any:
        from gnnd.sklearn import KNeighborsTransformer

        return KNeighborsTransformer(n_neighbors=k, device=options.device)

    def of_pynndescent() -> Any:
        from pynndescent import PyNNDescentTransformer
        from scipy.sparse import csr_matrix

        class Transformer(PyNNDescentTransformer):
            """Gives a matrix, which scanpy 1.12 needs, where pynndescent 0.7 gives an array."""

            def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:  # noqa: N803
                return csr_matrix(super().fit_transform(X, y))

        return Transformer(n_neighbors=k, n_jobs=-1)

    def of_pipnn() -> Any:
        from pipnn import PiPNNTransformer

        return PiPNNTransformer(k)

    return {
        "scanpy's default": ("scanpy", by(lambda: None)),
        "pynndescent": ("pynndescent", by(of_pynndescent)),
        "pipnn": ("pipnn", by(of_pipnn)),
        "gnnd": ("gnnd", by(of_gnnd)),
    }


def umap(options: argparse.Namespace) -> dict[str, tuple[str, Way]]:
    """Ways to UMAP's embedding."""
    k = options.neighbors

    def run(x: np.ndarray, with_gnnd: bool) -> dict[str, Any]:
        from sklearn.manifold import trustworthiness
        from umap import UMAP

        start, given, told = time.perf_counter(), {}, {}
        if with_gnnd:
            import gnnd

            given["precomputed_knn"] = gnnd.umap.precomputed_knn(x, k, device=options.device)
            told["neighbours_seconds"] = time.perf_counter() - start
        model = UMAP(n_neighbors=k, force_approximation_algorithm=True, **given).fit(x)
        seconds = time.perf_counter() - start
        some = np.random.default_rng(1).permutation(len(x))[:SAMPLE]
        quality = trustworthiness(x[some], model.embedding_[some], n_neighbors=10)
        return {"seconds": seconds, **told, "trustworthiness": float(quality), "trustworthiness_objects": len(some)}

    return {
        "umap's own": ("umap-learn", lambda x: run(x, False)),
        "gnnd": ("gnnd", lambda x: run(x, True)),
    }


# Of each task: its ways, the package that is measured, n, d and the dimension of rows that are made, and n of --quick.
TASKS: dict[str, tuple[Callable[[argparse.Namespace], dict[str, tuple[str, Way]]], str, int, int, int, int]] = {
    "neighbors": (neighbors, "scanpy", 1_000_000, 50, 20, 2_000),
    "umap": (umap, "umap-learn", 100_000, 784, 16, 1_000),
}


def installed(package: str) -> str | None:
    """Its version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def measured(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A record for each way of a task."""
    ways, tool, n, d, dimension, few = TASKS[name]
    n = options.rows or (few if options.quick else n)
    x = peers.read(options.data, options.rows) if options.data else gaussians(n, d, dimension)
    about = {
        "task": name,
        tool: installed(tool),
        "data": os.path.basename(options.data) if options.data else "gaussians",
        "n": len(x),
        "d": x.shape[1],
        "dimension": None if options.data else dimension,
        "neighbors": options.neighbors,
        "threads": len(os.sched_getaffinity(0)),
    }
    known = ways(options)
    for way in [one for one in options.ways if one in known] if options.ways else known:
        package, run = known[way]
        record = {**about, "way": way, "version": installed(package), "device": "cpu"}
        if way == "gnnd":
            record["device"] = options.device
        missing = [one for one in dict.fromkeys((tool, package)) if installed(one) is None]
        if missing:
            yield {**record, "left_out": f"{', '.join(missing)} is not installed"}
            continue
        try:
            if not options.quick:
                run(x[:WARM])
            yield {**record, **run(x)}
        except Exception as error:  # of a tool that does not fit the others' versions: the next ways still run
            yield {**record, "left_out": f"{type(error).__name__}: {error}"}


def table(records: list[dict[str, Any]]) -> str:
    """In Markdown."""
    lines = ["| task | n x d, dimension | neighbours by | device | seconds | quality |", "|---|---|---|---|---|---|"]
    for one in records:
        quality = [f"{name} {one[name]:.4f}" for name in one if name.startswith(("recall@", "trustworthiness"))][:1]
        by = f"{one['way']} {one['version'] or ''}".strip()
        cells = [one["task"], f"{one['n']:,} x {one['d']}, {one['dimension'] or 'not stated'}", by, one["device"]]
        cells += [one["left_out"], ""] if "left_out" in one else [f"{one['seconds']:.2f}", *quality]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"{' or '.join(TASKS)}; both, if none is named")
    parser.add_argument("--device", default="auto", help="of gnnd: auto, cpu, cuda, cuda:N")
    parser.add_argument("--ways", type=lambda text: text.split(","), help="only these, in this order")
    parser.add_argument("--quick", action="store_true", help="few rows, and no run before: whether it works")
    parser.add_argument("--rows", type=int, default=0, help="other than the task's")
    parser.add_argument("--data", help="u8bin, i8bin or fbin, instead of rows that are made")
    parser.add_argument("--neighbors", type=int, default=15, help="scanpy's and UMAP's n_neighbors, the row itself one")
    options = parser.parse_args(arguments)
    if unknown := set(options.tasks) - set(TASKS):
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    tasks = options.tasks or list(TASKS)
    if unknown := set(options.ways or ()) - {way for name in tasks for way in TASKS[name][0](options)}:
        parser.error(f"no such way: {', '.join(sorted(unknown))}")
    records = []
    for name in tasks:
        for record in measured(name, options):
            print(json.dumps(record), flush=True)
            records.append(record)
    print(table(records))


if __name__ == "__main__":
    main()
