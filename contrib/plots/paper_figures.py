#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the figures of benchs/paper from its result files alone: SVG, PNG, and the numbers that each shows as JSON.

paper_figures.py RESULTS -o FIGURES     RESULTS: a folder with EXPERIMENT.jsonl, or such files
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import style
from paper_bars import FIGURES

HEADINGS = {
    "convergence": "phi(G) by iteration",
    "ablation": "one change at a time",
    "million": "time against Recall@10",
    "scale10m": "time against Recall@10, ten times as many",
    "merge": "merging graphs",
    "large": "graphs in shards",
    "bootstrap": "graph indexes from vectors",
    "crossing": "cost by n",
}


def read(path: Path) -> list[dict]:
    """The measurements, the last line of each point. Raises ValueError where it is no result file."""
    records = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            records[record["key"]] = record
            known = record["status"] != "ok" or record["buildtime"] > 0 and record["series"] and record["dataset"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} is no result of run.py ({type(error).__name__}: {error})") from error
        if not known:
            raise ValueError(f"line {number} is no result of run.py")
    return [record for record in records.values() if record["status"] == "ok"]


def main() -> int:
    """0: all drawn; 1: something could not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="folders of result files, or the files")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the figures")
    options = parser.parse_args()
    paths = []
    for given in options.results:
        paths += sorted(given.glob("*.jsonl")) if given.is_dir() else [given]
    if not paths:
        sys.exit("paper_figures.py: no results in " + ", ".join(map(str, options.results)))
    try:
        pyplot = style.use()
    except ImportError:
        sys.exit("paper_figures.py: needs matplotlib (pip install matplotlib, or Debian's python3-matplotlib)")
    status = 0
    for path in paths:
        try:
            if path.stem not in FIGURES:
                raise ValueError("is named after no experiment, these are " + ", ".join(sorted(FIGURES)))
            records = read(path)
            if not records:
                raise ValueError("nothing in it was measured")
            for name, figure in FIGURES[path.stem](pyplot, records, HEADINGS[path.stem]):
                style.save(figure, options.output / f"{path.stem}_{name}")
                pyplot.close(figure)
                print(options.output / f"{path.stem}_{name}.svg")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"paper_figures.py: {path}: {reason}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
