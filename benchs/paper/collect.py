#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds result files of other runs to a folder of results, of each point the last measurement, and writes its tables and
figures anew. What a run left out is not kept.

collect.py INTO [FROM...]      folders with EXPERIMENT.jsonl, as run.py --out writes them; INTO/figures is drawn
"""

from __future__ import annotations

import sys
from pathlib import Path

from experiments import experiments
from results import OK, Store, load
from run import draw
from table import markdown

LEFT_OUT = ("left out by", "no time was left")  # what a command did not ask for, or did not get to


def add(store: Store, records: list[dict]) -> None:
    """A measured point is replaced by a measured one only."""
    for record in records:
        known = store.records.get(record["key"])
        if record["status"] == OK or known is None or known["status"] != OK:
            store.records[record["key"]] = record


def collect(into: Path, folders: list[Path]) -> list[str]:
    """Names of the experiments that INTO has results of."""
    found = []
    for name, experiment in experiments().items():
        store = Store(into, name)
        for folder in folders:
            add(store, load(folder / f"{name}.jsonl"))
        kept = [record for record in store.records.values() if not record.get("reason", "").startswith(LEFT_OUT)]
        if not kept:
            continue
        # Sets in the order in which they came, the points of each together.
        sets = list(dict.fromkeys((record["dataset"], record["n"]) for record in kept))
        kept.sort(key=lambda record: sets.index((record["dataset"], record["n"])))
        store.records = {record["key"]: record for record in kept}
        store.keep_only(list(store.records))
        text = markdown(experiment.title, experiment.claim, kept)
        (into / f"{name}.md").write_text(text, encoding="utf-8")
        found.append(name)
    return found


def main() -> int:
    """0: all is drawn; 1: a figure could not be; 2: wrong use."""
    folders = [Path(text) for text in sys.argv[1:]]
    wrong = [str(folder) for folder in folders if not folder.is_dir()]
    if not folders or wrong:
        print(f"collect.py: {', '.join(wrong) or 'INTO'}: no such folder", file=sys.stderr)
        return 2
    print("results of " + ", ".join(collect(folders[0], folders[1:])))
    return 0 if draw(folders[0]) else 1


if __name__ == "__main__":
    sys.exit(main())
