# SPDX-License-Identifier: MIT
"""Result files. Of each experiment EXPERIMENT.jsonl, a line per point; EXPERIMENT/KEY.h5, the same as HDF5 in the
layout of SISAP's and ann-benchmarks' results: `knns` (n x k, ids from 1 as SISAP has them) and `dists` where the graph
was kept, everything else as attributes.
"""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

OK, FAILED, SKIPPED = "ok", "failed", "skipped"


def at_values(k: int) -> list[int]:
    """The k's of Recall@k that are asked for."""
    return sorted({1, min(10, k), k})


def timed(seconds: list[float]) -> dict:
    """The fields of a record that tell its time."""
    return {
        "seconds": seconds,
        "buildtime": statistics.median(seconds),
        "repeats": len(seconds),
        "spread": max(seconds) - min(seconds),
    }


def recalls(line: dict, k: int) -> dict:
    """The recalls that a tool's line tells, by their k, the last as `k`, too."""
    recall = {str(at): line[f"recall@{at}"] for at in at_values(k) if f"recall@{at}" in line}
    if str(k) in recall:
        recall["k"] = recall[str(k)]
    return recall


def load(path: Path) -> list[dict]:
    """The last line of each point, in the order of the first. A line that a kill has cut off is passed over."""
    records: dict[str, dict] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            records[record["key"]] = record
    return list(records.values())


class Store:
    """The results of one experiment in a folder."""

    def __init__(self, folder: Path, experiment: str):
        self.folder, self.experiment = folder, experiment
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{experiment}.jsonl"
        self.records = {record["key"]: record for record in load(self.path)}

    def is_finished(self, key: str, retry: bool) -> bool:
        """Measured, or found to fail where that is not to be tried again."""
        status = self.records.get(key, {}).get("status")
        return status == OK or (status == FAILED and not retry)

    def add(self, record: dict, graph=None) -> None:
        """graph: ids (from 0) and distances, n x k each, or none"""
        self.records[record["key"]] = record
        cut_off = self.path.is_file() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size > 0
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * cut_off + json.dumps(record, sort_keys=True) + "\n")
        if record["status"] == OK:
            write_hdf5(self.folder / self.experiment / f"{record['key']}.h5", record, graph)

    def keep_only(self, keys: list[str]) -> None:
        """Writes the file anew, with the last line of each point only, these first and in their order."""
        rest = [key for key in self.records if key not in keys]
        lines = [json.dumps(self.records[key], sort_keys=True) for key in [*keys, *rest] if key in self.records]
        part = self.path.with_suffix(".part")
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        part.replace(self.path)


def attributes(record: dict) -> dict:
    """A record flat: names as SISAP's, ann-benchmarks' and ours, values that HDF5 holds."""
    flat = {
        "algo": record["series"],
        "dataset": record["dataset"],
        "buildtime": record.get("buildtime"),
        "params": record["params"],
        "k": record["k"],
        "querytime": 0.0,
        "id_base": 1,
    }
    for at, value in record.get("recall", {}).items():
        flat[f"recall@{at}"] = value
    for name, value in record.items():
        if name in flat or name in ("recall", "series") or value is None:
            continue
        flat[name] = json.dumps(value) if isinstance(value, (dict, list)) else value
    return {name: value for name, value in flat.items() if value is not None}


def write_hdf5(path: Path, record: dict, graph=None) -> None:
    """One result as HDF5."""
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with h5py.File(part, "w") as file:
        for name, value in attributes(record).items():
            file.attrs[name] = value
        for name in ("phi", "seconds"):
            if record.get(name):
                file.create_dataset(name, data=record[name])
        if graph is not None:
            file.create_dataset("knns", data=graph[0] + 1, compression="gzip", compression_opts=1)
            file.create_dataset("dists", data=graph[1], compression="gzip", compression_opts=1)
    part.replace(path)


BUILD_COLUMNS = ["algo_name", "index_name", "time", "threads", "cpu_time"]
SEARCH_COLUMNS = ["algo_name", "index_name", "recall", "throughput", "latency", "threads", "cpu_time"]


def export_csv(records: list[dict], folder: Path) -> list[Path]:
    """As cuvs-bench's data export has it: DATASET/result/build/ALGO,base.csv and
    DATASET/result/search/ALGO,base,kK,bsB,raw.csv. A graph counts as the search of all of its n vectors: throughput in
    vectors a second, the batch is n. Graph indexes are what they are: queries a second."""
    files: dict[Path, list[list]] = {}
    for record in records:
        if record["status"] != OK or record.get("predicted"):
            continue
        algo = record["series"].replace(",", " ").replace("/", " ")
        result = folder / f"{record['dataset']}-{record['n']}".replace(" ", "-") / "result"
        index = f"{algo}.{record['key']}"
        threads = record.get("threads") or 0
        build = result / "build" / f"{algo},base.csv"
        files.setdefault(build, [BUILD_COLUMNS]).append([algo, index, record["buildtime"], threads, ""])
        if record.get("curve"):
            at, batch = record["k"], record["queries"]
            rows = [(point["recall"], point["qps"], batch / point["qps"]) for point in record["curve"]]
        elif "10" in record.get("recall", {}):
            at, batch = 10, record["n"]
            rows = [(record["recall"]["10"], record["n"] / record["buildtime"], record["buildtime"])]
        else:
            continue
        search = result / "search" / f"{algo},base,k{at},bs{batch},raw.csv"
        table = files.setdefault(search, [[*SEARCH_COLUMNS, "build time"]])
        table += [[algo, index, *row, threads, "", record["buildtime"]] for row in rows]
    for path, rows in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    return sorted(files)
