# SPDX-License-Identifier: MIT
"""Figures of benchs/paper with bars: the ablation's waterfall, the billion, and what indexes take to make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import style
from paper_panels import FIGURES, Record, Sheet, by_set, curves, names_of, title_of, where

BILLION = 1_000_000_000
# Recall@10 of the waterfall: the highest that all steps but two reach; where no more than FEW were measured, all.
TARGETS = (0.99, 0.95, 0.9, 0.8, 0.6)
FEW = 4


def bars(
    axes, names: list[str], values: list[float | None], texts: list[str], label: str, others: Sequence[bool] = ()
) -> None:
    """Horizontal, on a logarithmic axis, the first on top; where there is no value only the text. Hatched are `others`:
    those that are not this project's."""
    known = [value for value in values if value is not None]
    least = min(known) / 3
    for at, (value, text, other) in enumerate(zip(values, texts, others or [False] * len(names), strict=True)):
        colour, hatch = ("0.65", "//") if other else ("0.35", "")
        if value is not None:
            axes.barh(at, value - least, left=least, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6)
        axes.annotate(
            text,
            (value if value is not None else least, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    style.cost_axis(axes.xaxis, label)
    axes.set_xlim(least, max(known) * (max(known) / least) ** (0.1 + 0.019 * max(map(len, texts))))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)  # room for names without a value, too
    axes.grid(axis="y", visible=False)


def least_seconds(records: list[Record], target: float) -> Record | None:
    """The fastest point that reaches the recall."""
    reached = [record for record in records if record["recall"]["10"] >= target]
    return min(reached, key=lambda record: record["buildtime"], default=None)


def ablation(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """Curves of all steps, and the time of each at one recall."""
    yield from curves(pyplot, records, heading)
    sets = by_set(records)
    figure, grid = pyplot.subplots(
        len(sets),
        1,
        figsize=(9, 0.8 + len(sets) * (1.0 + 0.36 * len(names_of(records)))),
        squeeze=False,
        layout="constrained",
    )
    for (axes,), mine in zip(grid, sets.values(), strict=True):
        steps = names_of(sorted(mine, key=lambda record: record["about"]["step"]))
        of_step = {step: [record for record in mine if record["series"] == step] for step in steps}
        enough = len(steps) - 2 if len(steps) > FEW else len(steps)
        target = next(
            (
                target
                for target in TARGETS
                if sum(least_seconds(of_step[step], target) is not None for step in steps) >= enough
            ),
            TARGETS[-1],
        )
        values, texts, before = [], [], None
        for step in steps:
            best = least_seconds(of_step[step], target)
            if best is None:
                highest = max(record["recall"]["10"] for record in of_step[step])
                values.append(None)
                texts.append(f"does not reach it: {highest:.4f} at most")
                continue
            seconds = best["buildtime"]
            factor = f", {seconds / before:.2f} of the time before" if before else ""
            how = ", by all pairs" if best.get("stop") == "exact" else ""
            values.append(seconds)
            texts.append(f"{seconds:.3g} s at {best['recall']['10']:.4f}{how}{factor}")
            before = seconds
        if any(value is not None for value in values):
            bars(axes, steps, values, texts, f"time (s) of the fastest setting with a Recall@10 of {target} or more")
        axes.set_title(title_of(mine[0]))
    figure.suptitle(f"{heading}\n{where(records)}", fontsize=10)
    yield "waterfall", figure


def large(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """Time against recall of what was run, and hours of a billion, as run and as predicted."""
    yield from curves(pyplot, [record for record in records if record["n"] < BILLION], heading)
    predicted = [record for record in records if record.get("predicted")]
    run = [record for record in records if not record.get("predicted") and record["n"] >= BILLION]
    if not predicted:
        return
    count = len(run) + 2 * len(predicted)
    figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.55 * count), layout="constrained")
    names, values, texts = [], [], []
    for record in predicted:
        hours, paper = record["buildtime"] / 3600, record["about"]["paper_hours"]
        names += [f"{record['dataset']}, predicted", f"{record['dataset']}, the paper"]
        values += [hours, paper]
        told = f"{hours:.2f} h in {record['shards']} shards, k = {record['k']} (this set was not run)"
        texts += [told, f"{paper} h, as printed, one GPU"]
    for record in run:
        hours, on = record["buildtime"] / 3600, record["about"].get("on") or record.get("gpu", "a CPU")
        names.append(f"{record['dataset']}, run")
        values.append(hours)
        texts.append(
            f"{hours:.2f} h in {record['shards']} shards on {on}, k = {record['k']}, "
            f"Recall@10 {record['recall']['10']:.3f}"
        )
    bars(axes, names, values, texts, "time (hours)", [name.endswith("the paper") for name in names])
    axes.set_title("1,000,000,000 vectors: predicted for one H200 by sharded_plan, the paper, and what was run")
    yield "billion", figure


def bootstrap(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """Queries a second against recall, and seconds until the index is there."""
    sets = by_set(records)
    sheet = Sheet(pyplot, 2 * len(sets), names_of(records), heading, records, 2)
    for at, mine in enumerate(sets.values()):
        axes = sheet.panels[2 * at]
        floor = 0.2 / (10 * min(record["queries"] for record in mine))
        for record in mine:
            front = style.pareto([(point["recall"], point["qps"]) for point in record["curve"]], more_is_better=True)
            axes.plot(
                [max(1 - recall, floor) for recall, _ in front],
                [qps for _, qps in front],
                gid="qps",
                label=record["series"],
                **sheet.marks.of(record["series"]),
            )
        style.cost_axis(axes.yaxis, f"queries a second, {mine[0]['threads']} threads")
        style.recall_axis(axes, f"Recall@{mine[0]['k']}", floor)
        axes.set_title(title_of(mine[0]))
        axes = sheet.panels[2 * at + 1]
        ours = {record["series"] for record in mine if record["series"].startswith("GNND")}
        # Each of ours is above what it replaces.
        made = sorted(mine, key=lambda one: (one["series"].removeprefix("GNND64,"), one["series"] not in ours))
        bars(
            axes,
            [record["series"] for record in made],
            [record["buildtime"] for record in made],
            [f"{record['buildtime']:.3g} s" for record in made],
            "time from vectors to index (s)",
            [record["series"] not in ours for record in made],
        )
        axes.set_title("construction; hatched: without GNND")
    sheet.legend()
    yield "search", sheet.figure


FIGURES.update({"ablation": ablation, "large": large, "bootstrap": bootstrap})
