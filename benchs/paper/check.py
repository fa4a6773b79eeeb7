#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the results and figures of `run.py all --quick --graphs`: are all points there, do graphs have the recall
that is told, do figures show what was measured, with axes, and rise and fall where they must?

check.py RESULTS --before FOLDER     FOLDER: the .jsonl files before run.py ran once more
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import sys
from pathlib import Path

import formats
import h5py
import numpy as np
import results
from datasets import DIMENSION_ROWS
from experiments import NAMES

FIGURES = {
    "convergence": ["phi"],
    "ablation": ["time_recall", "waterfall"],
    "million": ["time_recall"],
    "scale10m": ["time_recall"],
    "merge": ["time_recall", "parts"],
    "large": ["time_recall", "billion"],
    "bootstrap": ["search"],
    "crossing": ["cost"],
}
NEEDED = ("buildtime", "seconds", "spread", "repeats", "recall", "recall_source", "commit", "date", "host_cpu", "cores")
MEASURED = ("device", "threads", "peak_bytes", "seed")  # of what is not predicted; earlier lines lack some
SKIPS = ("no switch", "is not installed", "CAGRA", "knows no cosine")  # what may be left out, and why


def require(condition: bool, text: str) -> None:
    """Collects what is wrong."""
    if not condition:
        require.wrong.append(text)


require.wrong = []


def check_record(record: dict) -> None:
    """One point."""
    name = f"{record['experiment']}: {record['dataset']}, {record['series']} {record['params']}"
    if record["status"] == results.SKIPPED:
        require(any(text in record["reason"] for text in SKIPS), f"{name} was left out: {record['reason']}")
        return
    require(record["status"] == results.OK, f"{name} failed: {record.get('reason')}")
    if record["status"] != results.OK:
        return
    require(all(field in record for field in NEEDED), f"{name} lacks {[f for f in NEEDED if f not in record]}")
    told = 3 if record["tool"] == "gpu_bench" else record["repeats"]  # least, median and most, however many there were
    require(record["buildtime"] > 0 and len(record["seconds"]) == told, f"{name} has no time")
    require(all(0 <= value <= 1 for value in record["recall"].values()), f"{name} has a recall outside of [0, 1]")
    if record.get("predicted"):
        return
    require("10" in record["recall"], f"{name} has no Recall@10")
    if record["series"] in ("all pairs (gnnd)", "FAISS flat"):
        require(min(record["recall"].values()) > 0.999, f"{name} is not exact: {record['recall']}")
    if record["series"] == "GNND" and record["n"] < 20_000:  # of many vectors that are hard few are found
        require(record["recall"]["10"] > 0.7, f"{name} found {record['recall']['10']}")
    dimension = record.get("dimension")
    known = dimension is not None and dimension > 0
    require(known or record["n"] > DIMENSION_ROWS, f"{name}: the dimension was not measured")
    stated = record.get("stated_dimension")
    if stated is not None and dimension:  # few vectors make high dimensions look lower, a bent cube higher: README.md
        require(stated / 4 < dimension < stated * 1.4, f"{name}: dimension {dimension}, stated {stated}")


@functools.cache
def exact_limits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a file, n x d, and the squared distances of all to their tenth neighbours, n x 1."""
    file = formats.recognise(path)
    x = formats.read(file, np.arange(file.n)).astype(np.float64)
    norms, limit = (x * x).sum(1), np.empty((file.n, 1))
    for begin in range(0, file.n, 500):
        part = slice(begin, begin + 500)
        distances = norms[part, None] + norms[None, :] - 2 * x[part] @ x.T
        distances[np.arange(len(distances)), np.arange(begin, begin + len(distances))] = np.inf
        nearest = np.argpartition(distances, 9, 1)[:, :10]
        # Products lose digits that differences keep.
        limit[part, 0] = ((x[part, None, :] - x[nearest]) ** 2).sum(2).max(1)
    return x, limit


def check_graphs(folder: Path, record: dict) -> bool:
    """Recall and distances of the graph in the HDF5 file, by numpy, of all objects. False: there is none."""
    with h5py.File(folder / record["experiment"] / f"{record['key']}.h5") as file:
        attributes = dict(file.attrs)
        if "knns" not in file:
            return False
        ids, distances = file["knns"][:] - int(attributes["id_base"]), file["dists"][:]
    name = f"{record['experiment']}/{record['key']}.h5 ({record['series']})"
    require(abs(attributes["recall@10"] - record["recall"]["10"]) < 1e-12, f"{name}: another recall than in the line")
    require(
        attributes["algo"] == record["series"] and attributes["buildtime"] == record["buildtime"],
        f"{name}: other attributes than in the line",
    )
    path = next((folder / "data").glob(f"{record['dataset'].replace(' ', '-')}-{record['n']}-??????.*bin"))
    x, limit = exact_limits(path)
    told = np.stack([((x - x[column]) ** 2).sum(1) for column in ids.T], 1)
    require(np.allclose(told, distances, rtol=1e-3, atol=1e-6 * float((x * x).sum(1).max())), f"{name}: distances")
    recall = float((told[:, :10] <= limit * (1 + 1e-6)).mean())
    require(abs(recall - record["recall"]["10"]) < 0.05, f"{name}: Recall@10 {recall}, told {record['recall']['10']}")
    return True


def never_rises(values: list[float], slack: float = 1e-9) -> bool:
    """True if each is at most the one before."""
    return all(after <= before * (1 + slack) for before, after in zip(values, values[1:], strict=False))


def check_figure(folder: Path, experiment: str, name: str, records: list[dict]) -> None:
    """The numbers that a figure shows, and that it can be seen."""
    import matplotlib.image

    path = folder / "figures" / f"{experiment}_{name}"
    if not path.with_suffix(".json").is_file():
        require(False, f"{path} was not drawn")
        return
    panels = json.loads(path.with_suffix(".json").read_text())
    sets = {(record["dataset"], record["n"]) for record in records if not record.get("predicted")}
    for panel in panels:
        require(bool(panel["xlabel"] and panel["title"]), f"{path}: a panel without label or title")
        require(bool(panel["ylabel"] or panel["bars"]), f"{path}: a panel without a label of y")
        require(bool(panel["lines"] or panel["bars"]), f"{path}: an empty panel")
        for bar in panel["bars"]:
            require(bar["width"] > 0, f"{path}: a bar of no length")
    lines = [line for panel in panels for line in panel["lines"]]
    if name == "time_recall":
        require(len(panels) == len(sets), f"{path}: {len(panels)} panels for {len(sets)} sets")
        shown = [record for record in records if not record.get("predicted") and not record["about"].get("parts")]
        require(
            sum(len(line["x"]) for line in lines) == len(shown), f"{path}: not all of {len(shown)} points are shown"
        )
        for line in lines:
            if line["gid"] == "front":  # the recall rises, and what it costs
                require(never_rises(line["x"]) and never_rises(line["y"][::-1]), f"{path}: {line['label']} is no front")
        require(
            all(panel["ylabel"] == "time (s)" and "Recall@" in panel["xlabel"] for panel in panels), f"{path}: axes"
        )
    if name == "phi":
        require(len(panels) == len(sets) and len(lines) == 4 * len(sets), f"{path}: {len(lines)} lines")
        for line in lines:
            require(never_rises(line["y"], 1e-6), f"{path}: phi(G) of {line['label']} rises")
            require(min(line["y"]) >= 0, f"{path}: {line['label']} is better than the exact graph")
    if name == "parts":
        require(len(panels) == 2 * len(sets), f"{path}: {len(panels)} panels")
    if name == "cost":
        for line in lines:
            if line["gid"] == "cost":
                require(line["x"] == sorted(line["x"]), f"{path}: {line['label']}")
        for series in {(record["dataset"], record["series"]) for record in records}:
            mine = [record for record in records if (record["dataset"], record["series"]) == series]
            few, many = (end(mine, key=lambda record: record["n"]) for end in (min, max))
            # The least times: other work may have disturbed one of the few that the figure's are the median of.
            require(min(many["seconds"]) > min(few["seconds"]), f"{path}: {series} takes no longer for more")
    if name == "search":
        fronts = [line for line in lines if line["gid"] == "qps"]
        require(
            len(fronts) == len([record for record in records if record.get("curve")]), f"{path}: curves are missing"
        )
        for line in fronts:
            require(never_rises(line["x"]) and never_rises(line["y"]), f"{path}: {line['label']} is no front")
    picture = matplotlib.image.imread(path.with_suffix(".png"))
    require(picture.shape[0] > 200 and picture.shape[1] > 300 and picture[..., :3].std() > 0.02, f"{path}.png is blank")
    require("<svg" in path.with_suffix(".svg").read_text()[:1000], f"{path}.svg is none")


def check_csv(folder: Path, count: int) -> None:
    """As cuvs-bench reads them."""
    rows = {"build": 0, "search": 0}
    for path in folder.glob("*/result/*/*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        kind = path.parent.name
        columns = results.BUILD_COLUMNS if kind == "build" else results.SEARCH_COLUMNS
        require(list(table[0])[: len(columns)] == columns, f"{path}: columns {list(table[0])}")
        require(all(float(row["time" if kind == "build" else "throughput"]) > 0 for row in table), f"{path}: numbers")
        rows[kind] += len(table)
    require(rows["build"] == count and rows["search"] >= count, f"{folder}: {rows} rows for {count} points")


def main() -> int:
    """0: all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--before", type=Path, required=True)
    options = parser.parse_args()
    points = graphs = 0
    for name in NAMES:
        records = results.load(options.results / f"{name}.jsonl")
        require(bool(records), f"{name}: no results")
        for record in records:
            check_record(record)
        good = [record for record in records if record["status"] == results.OK]
        before = {record["key"]: record for record in results.load(options.before / f"{name}.jsonl")}
        for record in good:
            require(before.get(record["key"]) == record, f"{name}: {record['series']} was measured again")
            lacks = [field for field in MEASURED if field not in record and not record.get("predicted")]
            require(not lacks, f"{name}: {record['series']} {record['params']} lacks {lacks}")
        points += len([record for record in good if not record.get("predicted")])
        for record in good:
            if record["metric"] == "l2" and not record.get("predicted"):
                graphs += check_graphs(options.results, record)
        for figure in FIGURES[name]:
            check_figure(options.results, name, figure, good)
    check_csv(options.results / "csv", points)
    require(graphs > 100, f"only {graphs} graphs were kept")
    for text in require.wrong:
        print(f"check.py: {text}", file=sys.stderr)
    print(
        f"{points} points, {graphs} graphs compared with all pairs, {sum(map(len, FIGURES.values()))} figures: "
        + ("good" if not require.wrong else f"{len(require.wrong)} things are wrong")
    )
    return 1 if require.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
