#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws queries a second against Recall@k, a curve for each index, from the lines that `index_bench ... search` prints.

search_curves.py RESULTS... -o curves.svg       RESULTS: files of JSON lines; the picture's name says its format
"""

import argparse
import json
import sys

import style


def read(paths):
    """Of each index its points (recall, queries a second), by recall; and what all lines say of the data."""
    curves, said = {}, None
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.strip()]
            for line in lines:
                curves.setdefault(line["index"], []).append((line["recall"], line["qps"]))
                said = said or line
        except OSError as error:
            sys.exit(f"search_curves.py: {path}: {error.strerror}")
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"search_curves.py: {path}: is no output of index_bench search ({type(error).__name__}: {error})")
    if not curves:
        sys.exit("search_curves.py: no results in " + ", ".join(paths))
    return {index: sorted(points) for index, points in curves.items()}, said


def draw(curves, said, least, output):
    try:
        pyplot = style.use()
    except ImportError:
        sys.exit("search_curves.py: needs matplotlib (pip install matplotlib, or Debian's python3-matplotlib)")
    marks = style.Marks(curves)
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for index, points in curves.items():
        shown = [(recall, qps) for recall, qps in points if least <= recall < 1]
        axes.plot([1 - recall for recall, _ in shown], [qps for _, qps in shown], label=index, **marks.of(index))
    style.recall_axis(axes, f"Recall@{said['k']}")
    axes.set_yscale("log")
    axes.set_ylabel(f"queries a second, threads: {said['threads']}")
    axes.set_title(f"{said['data']}, {said['n']:,} x {said['d']}, {said['metric']}")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(output, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", help="files of JSON lines")
    parser.add_argument("-o", "--output", required=True, help="the picture, .svg or .png")
    parser.add_argument("--least", type=float, default=0.8, help="recall that curves begin at (default: %(default)s)")
    arguments = parser.parse_args()
    draw(*read(arguments.results), arguments.least, arguments.output)


if __name__ == "__main__":
    main()
