#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the paper's comparisons: measures what is not there yet, writes result files, draws figures, prints a table.

run.py list | all | EXPERIMENT...        benchs/paper/README.md says what comes out
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
FIGURES = REPOSITORY / "contrib/plots/paper_figures.py"

try:
    import datasets
    import results
    from drivers import TOOLS
    from experiments import NAMES, experiments
    from points import Context, Point
    from runner import Runner, duration
    from table import markdown
    from tools import Tools
except ModuleNotFoundError as error:
    sys.exit(
        f"run.py: needs {error.name}: pip install -r {HERE / 'requirements.txt'}, or use benchs/paper/check.sh's "
        "virtual environment"
    )


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """words: the command line; none: the process's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "experiment",
        nargs="+",
        choices=["list", "all", *NAMES],
        metavar="EXPERIMENT",
        help="list, all, " + ", ".join(NAMES),
    )
    parser.add_argument("--quick", action="store_true", help="small sets, few points: all eight in some minutes")
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        help="stands for the paper's million; other sizes in proportion (default: %(default)s)",
    )
    parser.add_argument("--repeat", type=int, default=0, help="measure each point so often; 0: as the experiment says")
    parser.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder with photosift1m and public sets; may be given several times",
    )
    parser.add_argument("--out", type=Path, help="where results go (default: out/paper, or out/paper-quick)")
    parser.add_argument(
        "--cache", type=Path, help="where made and cut sets are kept (default: ~/.cache/gnnd/paper-data)"
    )
    parser.add_argument(
        "--build", type=Path, help="build folder with the tools (default: build/cuda with a GPU, otherwise build/cpu)"
    )
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="(default: %(default)s)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=sorted(TOOLS),
        metavar="TOOL",
        help="leave out points of this tool: " + ", ".join(sorted(TOOLS)),
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME",
        help="measure only points of sets whose names begin so; may be given several times",
    )
    parser.add_argument(
        "--series",
        action="append",
        default=[],
        metavar="NAME",
        help="measure only points of series whose names begin so; may be given several times",
    )
    parser.add_argument(
        "--params",
        action="append",
        default=[],
        metavar="TEXT",
        help="measure only points whose parameters end so; may be given several times",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="end after so many: what is measured by then is kept, the rest left out; the same command goes on",
    )
    parser.add_argument("--retry", action="store_true", help="measure again what has failed")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--graphs", action="store_true", help="keep graphs as `knns` and `dists` in the HDF5 files")
    parser.add_argument(
        "--timeout", type=float, default=7200, help="seconds that one command may take (default: %(default)s)"
    )
    parser.add_argument("--csv", type=Path, metavar="DIR", help="also write the results as cuvs-bench's CSV files")
    parser.add_argument("--no-figures", action="store_true", help="do not draw")
    options = parser.parse_args(words)
    if options.rows < 1000 or options.repeat < 0:
        parser.error("--rows: at least 1000; --repeat: at least 0")
    if "list" in options.experiment and len(options.experiment) > 1:
        parser.error("list stands alone")
    for folder in options.data:
        if not folder.is_dir():
            parser.error(f"--data {folder}: no such folder")
    return options


def has_gpu() -> bool:
    """True if nvidia-smi sees a GPU."""
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.startswith(
            "GPU"
        )
    except OSError:
        return False


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def left_out(point: Point, options: argparse.Namespace) -> str:
    """Why the command line leaves a point out; empty where it does not."""
    if point.tool in options.without:
        return "left out by --without"
    if options.set and not point.data.name.startswith(tuple(options.set)):
        return "left out by --set"
    if options.series and not point.series.startswith(tuple(options.series)):
        return "left out by --series"
    if options.params and not point.configuration.endswith(tuple(options.params)):
        return "left out by --params"
    return ""


def draw(folder: Path) -> bool:
    """All figures of the results in a folder."""
    return (
        subprocess.run(
            [sys.executable, str(FIGURES), str(folder), "-o", str(folder / "figures")], check=False
        ).returncode
        == 0
    )


def main() -> int:
    """0: all points are there; 1: some failed; 2: wrong use."""
    begin = time.monotonic()
    options = arguments()
    known = experiments()
    if options.experiment == ["list"]:
        for experiment in known.values():
            print(f"{experiment.name:12} {experiment.title}")
        return 0
    gpu = options.device == "cuda" or (options.device == "auto" and has_gpu())
    build = options.build or REPOSITORY / "build" / ("cuda" if gpu else "cpu")
    if not (build / "bin/gnnd").is_file():
        say(
            f"run.py: {build} holds no tools: cmake --preset {build.name} && cmake --build --preset {build.name} "
            "--target gnnd_cli build_bench index_bench sharded_plan make_vectors" + " gpu_bench" * gpu
        )
        return 2
    out = options.out or REPOSITORY / "out" / ("paper-quick" if options.quick else "paper")
    cache = options.cache or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gnnd/paper-data"
    out.mkdir(parents=True, exist_ok=True)
    scratch = out / "scratch"
    scratch.mkdir(exist_ok=True)
    tools = Tools(build, scratch, "cuda:0" if gpu else "cpu", options.timeout, options.graphs)
    tools.until = begin + options.seconds
    library = datasets.Library(tools, options.data, cache, say)
    context = Context(library, gpu, options.quick, options.rows)
    runner = Runner(tools, library, gpu, options.retry, say)
    names = NAMES if "all" in options.experiment else dict.fromkeys(options.experiment)
    good, records = True, []
    for name in names:
        experiment, start = known[name], time.monotonic()
        say(f"== {name}: {experiment.title}")
        if options.fresh:
            (out / f"{name}.jsonl").unlink(missing_ok=True)
        store = results.Store(out, name)
        points = experiment.points(context)
        points = [replace(point, why_not=point.why_not or left_out(point, options)) for point in points]
        if options.repeat:
            points = [replace(point, repeat=options.repeat) for point in points]
        good &= runner.run(points, store)
        mine = [store.records[point.key] for point in points]
        records += mine
        text = markdown(experiment.title, experiment.claim, mine)
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        print(text, flush=True)
        say(f"== {name}: {duration(time.monotonic() - start)}")
    shutil.rmtree(scratch)
    if options.csv:
        say(f"{len(results.export_csv(records, options.csv))} CSV files in {options.csv}")
    if not options.no_figures:
        good &= draw(out)
    failed = [record for record in records if record["status"] == results.FAILED]
    for record in failed:
        say(
            f"failed: {record['experiment']}: {record['dataset']}, {record['series']} {record['params']}: "
            f"{record['reason']}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("run.py: interrupted; the same command goes on")
