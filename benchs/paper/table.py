#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results as a Markdown table: of an experiment, or of the lines that build_bench and the scripts of peers print, the
fastest first.

table.py LINES...      files of JSON lines, - for standard input
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from results import OK, recalls, timed

COLUMNS = (
    "set",
    "n x d",
    "dimension: stated, measured",
    "method",
    "parameters",
    "k",
    "seconds",
    "spread",
    "Recall@1",
    "@10",
    "@k",
    "on",
)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def row(record: dict) -> list[str]:
    """Cells of a point."""
    if record["status"] != OK:
        reason = record.get("reason", "").replace("|", "/").replace("\n", " ")
        return [
            record["dataset"],
            f"{record['n']:,}",
            "",
            record["series"],
            record["params"],
            str(record["k"]),
            f"{record['status']}: {reason}",
            "",
            "",
            "",
            "",
            "",
        ]
    recall = record["recall"]
    stated, measured = record.get("stated_dimension"), record.get("dimension")
    on = record.get("gpu") if str(record.get("device", "")).lower() not in ("", "cpu") else None
    on = on or f"cpu, {record.get('threads') or record['asked_threads'] or record['cores']} threads"
    dimension = f"{_number(stated, '.0f') or '-'}, {_number(measured, '.1f') or '-'}"
    params = record["params"]
    if record.get("curve"):
        widest = record["curve"][-1]
        params += f"; beam {widest['beam']}: {widest['qps']:.0f} queries/s"
    return [
        record["dataset"],
        f"{record['n']:,} x {record.get('d', '')}",
        dimension,
        record["series"],
        params,
        str(record["k"]),
        f"{record['buildtime']:.4g}" + " (predicted)" * bool(record.get("predicted")),
        _number(record.get("spread"), ".2g"),
        *(_number(recall.get(at), ".4f") for at in ("1", "10", "k")),
        "one H200" if record.get("predicted") else on,
    ]


def markdown(title: str, claim: str, records: list[dict]) -> str:
    """The whole table, what the paper says above it."""
    lines = [f"# {title}", "", claim, "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row(record)) + " |" for record in records]
    return "\n".join(lines) + "\n"


def of_lines(lines: list[dict]) -> list[dict]:
    """Records of lines, one for all rounds of a configuration. Raises KeyError where a line is none of theirs."""
    rounds: dict[tuple, list[dict]] = {}
    for line in lines:
        what = (line["data"], line["n"], line["d"], line["k"], line["method"], line["configuration"])
        rounds.setdefault((*what, line.get("device", "")), []).append(line)
    records = []
    for (data, n, d, k, method, configuration, device), mine in rounds.items():
        each = [recalls(line, k) for line in mine]
        records.append(
            {
                "status": OK,
                "dataset": data,
                "n": n,
                "d": d,
                "k": k,
                "series": method,
                "params": configuration.replace("|", "/"),
                "device": device,
                "gpu": device,
                "cores": os.cpu_count(),
                "threads": mine[-1].get("threads"),
                "asked_threads": 0,
                **timed([line["seconds"] for line in mine]),
                "recall": {at: sum(recall[at] for recall in each) / len(each) for at in each[0]},
            }
        )
    return sorted(records, key=lambda record: (record["dataset"], record["n"], record["k"], record["buildtime"]))


def main() -> None:
    """Prints the table."""
    lines: list[dict] = []
    for path in sys.argv[1:] or sys.exit(__doc__):
        try:
            text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
            mine = [json.loads(line) for line in text.splitlines() if line.strip()]
            of_lines(mine)
            lines += mine
        except OSError as error:
            sys.exit(f"table.py: {path}: {error.strerror}")
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"table.py: {path}: is no output of build_bench or a peer ({type(error).__name__}: {error})")
    if not lines:
        sys.exit("table.py: no results in " + ", ".join(sys.argv[1:]))
    print(markdown("builders", "Recall over sampled objects; the median of all rounds.", of_lines(lines)), end="")


if __name__ == "__main__":
    main()
