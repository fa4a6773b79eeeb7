#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A table of the lines that build_bench and the peer_*.py print: of each configuration the median and least seconds.

Usage: peer_table.py LINES...      LINES: files of JSON lines, - for standard input
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path


def read(paths: Iterable[str]) -> list[dict]:
    """All lines of the files; what is none of theirs ends the program."""
    lines = []
    for path in paths:
        try:
            text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
            for line in filter(str.strip, text.splitlines()):
                row = json.loads(line)
                lines.append({key: row[key] for key in ("method", "configuration", "data", "n", "d", "k", "seconds")})
                at = max(count for count in range(1, 11) if f"recall@{count}" in row)
                lines[-1].update(at=at, recall=row[f"recall@{at}"], device=row.get("device", ""))
        except OSError as error:
            sys.exit(f"peer_table.py: {path}: {error.strerror}")
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"peer_table.py: {path}: is no output of build_bench or a peer ({type(error).__name__}: {error})")
    if not lines:
        sys.exit("peer_table.py: no results in " + ", ".join(paths))
    return lines


def table(lines: list[dict]) -> str:
    """Markdown, one table for each data set and k, the fastest first."""
    sets: dict[tuple, dict[tuple, list[dict]]] = {}
    for line in lines:
        data = (line["data"], line["n"], line["d"], line["k"], line["at"])
        sets.setdefault(data, {}).setdefault((line["method"], line["configuration"], line["device"]), []).append(line)
    out = []
    for (data, n, d, k, at), methods in sets.items():
        out += [
            f"{data}: {n:,} x {d}, k = {k}",
            "",
            f"| builder | device | seconds, median | least | Recall@{at} |",
            "|---|---|---|---|---|",
        ]
        rows = []
        for (method, configuration, device), runs in methods.items():
            seconds = [run["seconds"] for run in runs]
            recall = statistics.fmean(run["recall"] for run in runs)
            name = configuration if method in configuration else f"{method}, {configuration}"
            name = name.replace("|", "/")
            rows.append(
                (
                    statistics.median(seconds),
                    f"| {name} | {device} | {statistics.median(seconds):.4g} | {min(seconds):.4g} | {recall:.4f} |",
                )
            )
        out += [row for _, row in sorted(rows)] + [""]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", nargs="+", help="files of JSON lines, - for standard input")
    print(table(read(parser.parse_args().lines)), end="")


if __name__ == "__main__":
    main()
