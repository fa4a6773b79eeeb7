# SPDX-License-Identifier: MIT
"""The figures of benchs/paper, each drawn from the records of one experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import style

Record = dict
EXACT = "exact"  # marks lines and points that stand for an exact graph


def by_set(records: list[Record]) -> dict[tuple, list[Record]]:
    """Records of each set of vectors, in their order."""
    sets: dict[tuple, list[Record]] = {}
    for record in records:
        sets.setdefault((record["dataset"], record["n"]), []).append(record)
    return sets


def title_of(record: Record) -> str:
    """Name, size, and intrinsic dimension as measured and stated."""
    parts = [
        f"{record['dataset']}: {record['n']:,} x {record.get('d', '?')} {record.get('dtype', '')}, "
        f"{record['metric']}, k = {record['k']}"
    ]
    dimension = []
    if record.get("dimension") is not None:
        dimension.append(f"{record['dimension']:.1f} measured")
    if record.get("stated_dimension") is not None:
        dimension.append(f"{record['stated_dimension']:.0f} stated")
    return parts[0] + ("\nintrinsic dimension " + ", ".join(dimension) if dimension else "")


def where(records: list[Record]) -> str:
    """The machine, and the commits: all there are, for points that were added later are of another one."""

    def machine(record: Record) -> str:
        on = f"{record['host_cpu'].removesuffix(' Processor')}, {record['cores']} cores"
        return (record["gpu"] + "; " if record.get("gpu") else "") + on

    machines = dict.fromkeys(machine(record) for record in records)
    commits = dict.fromkeys(record["commit"] for record in sorted(records, key=lambda record: record.get("date", "")))
    return "; ".join([*machines, ", ".join(commits)])


class Sheet:
    """A figure of panels side by side, one legend below."""

    def __init__(self, pyplot, count: int, names: list[str], heading: str, records: list[Record], in_a_row: int = 3):
        columns = min(in_a_row, count)
        rows = -(-count // columns)
        size = (max(5.8, 4.3 * columns), 3.5 * rows + 0.6)
        self.figure, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        self.panels = [axes for line in grid for axes in line]
        for axes in self.panels[count:]:
            axes.remove()
        self.marks = style.Marks(names)
        self.figure.suptitle(f"{heading}\n{where(records)}", fontsize=10)

    def legend(self) -> None:
        """Of all names that any panel has."""
        handles = {}
        for axes in self.figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        if handles:
            columns = max(1, min(4, int(self.figure.get_figwidth() / 2.6)))
            self.figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def names_of(records: list[Record]) -> list[str]:
    """Series in their order."""
    return list(dict.fromkeys(record["series"] for record in records))


def time_against_recall(axes, marks: style.Marks, records: list[Record], at: str = "10") -> None:
    """Seconds of every point, and the Pareto front of each series."""
    floor = 0.2 / min(10 * record["queries_or"] for record in records)
    for name in names_of(records):
        points = [(record["recall"][at], record["buildtime"]) for record in records if record["series"] == name]
        look = marks.of(name)
        front = style.pareto(points)
        axes.plot(
            [max(1 - recall, floor) for recall, _ in front],
            [seconds for _, seconds in front],
            label=name,
            gid="front",
            **look,
        )
        rest = [point for point in points if point not in front]
        if rest:
            axes.plot(
                [max(1 - recall, floor) for recall, _ in rest],
                [seconds for _, seconds in rest],
                gid="dominated",
                **{**look, "linestyle": "none"},
                alpha=0.35,
                markersize=3.5,
            )
    style.cost_axis(axes.yaxis, "time (s)")
    style.recall_axis(axes, f"Recall@{at}", floor)


def curves(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """A panel for each set."""
    records = [record for record in records if "10" in record["recall"] and not record.get("predicted")]
    for record in records:
        record["queries_or"] = int(record["recall_source"].split()[0]) if record["recall_source"][0].isdigit() else 1000
    sets = by_set(records)
    if not sets:
        return
    sheet = Sheet(pyplot, len(sets), names_of(records), heading, records)
    for axes, mine in zip(sheet.panels, sets.values(), strict=False):
        axes.set_title(title_of(mine[0]))
        time_against_recall(axes, sheet.marks, mine)
    sheet.legend()
    yield "time_recall", sheet.figure


def convergence(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """phi(G) above that of the exact graph, by iteration. A set without an exact graph is left out, which the heading
    says."""

    def exact_of(mine: list[Record]) -> float | None:
        return next((record["phi_graph"] for record in mine if record["series"].startswith("all pairs")), None)

    sets = by_set([record for record in records if record.get("phi") or record.get("phi_graph")])
    without = [f"{name} {n:,}" for (name, n), mine in sets.items() if exact_of(mine) is None]
    sets = {key: mine for key, mine in sets.items() if exact_of(mine) is not None}
    if not sets:
        raise ValueError("there is no exact graph to compare phi(G) with")
    if without:
        heading += f" (without an exact graph, left out: {', '.join(without)})"
    names = [name for name in names_of(records) if not name.startswith("all pairs")]
    sheet = Sheet(pyplot, len(sets), names, heading, records)
    for axes, mine in zip(sheet.panels, sets.values(), strict=False):
        exact = exact_of(mine)
        for name in names:
            of_series = [record for record in mine if record["series"] == name]
            if not of_series:
                continue
            if "iteration" in of_series[0]["about"]:
                at = [record["about"]["iteration"] for record in of_series]
                phi = [record["phi_graph"] for record in of_series]
            else:
                phi = of_series[0]["phi"]
                at = list(range(len(phi)))
            # Lists of a GPU hold rounded distances, whose sum may be a little below the exact one.
            excess = [max(value / exact - 1, 1e-7) for value in phi]
            axes.plot(at, excess, label=name, **sheet.marks.of(name))
        axes.set_yscale("log")
        axes.set_xlabel("iteration (0: the first lists)")
        axes.set_ylabel("phi(G) / phi(exact graph) - 1")
        axes.set_title(title_of(mine[0]))
    sheet.legend()
    yield "phi", sheet.figure


def crossing_point(first: dict[int, float], second: dict[int, float]) -> float | None:
    """The n from which on the first one costs less, on straight lines between measured points in log-log."""
    from math import exp, log

    sizes = sorted(set(first) & set(second))
    for low, high in zip(sizes, sizes[1:], strict=False):
        before, after = log(first[low] / second[low]), log(first[high] / second[high])
        if before > 0 >= after:
            share = before / (before - after)
            return exp(log(low) + share * (log(high) - log(low)))
    return None


def crossing_title(mine: list[Record], costs: dict[str, dict[int, float]]) -> str:
    """From which n on GNND costs less than each other, and the least it finds; shorter where GNND was not measured."""
    title = f"{mine[0]['dataset']}, d = {mine[-1]['d']}, k = {mine[-1]['k']}"
    gnnd = costs.get("GNND")
    if not gnnd:
        return title + "; GNND was not measured"
    notes = []
    for other, cost in costs.items():
        both = set(gnnd) & set(cost)
        if other == "GNND" or not both:
            continue
        n = crossing_point(gnnd, cost)
        if n is not None:
            notes.append(f"cheaper than {other} from n = {n:,.0f} on")
        else:
            cheaper = all(gnnd[size] < cost[size] for size in both)
            notes.append(f"{'always' if cheaper else 'not'} cheaper than {other} at these n")
    lowest = min(record["recall"]["10"] for record in mine if record["series"] == "GNND")
    return f"{title}; Recall@10 of GNND at least {lowest:.4f}" + ("\nGNND is " if notes else "") + "\nand ".join(notes)


def crossing(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """Seconds against n."""
    kinds = list(dict.fromkeys(record["dataset"] for record in records))
    sheet = Sheet(pyplot, len(kinds), names_of(records), heading, records)
    for axes, kind in zip(sheet.panels, kinds, strict=False):
        mine = sorted((record for record in records if record["dataset"] == kind), key=lambda record: record["n"])
        costs = {
            name: {record["n"]: record["buildtime"] for record in mine if record["series"] == name}
            for name in names_of(mine)
        }
        for name, cost in costs.items():
            axes.plot(list(cost), list(cost.values()), label=name, gid="cost", **sheet.marks.of(name))
            if (n := crossing_point(costs.get("GNND", {}), cost)) is not None:
                axes.axvline(n, color="0.5", linestyle=":", linewidth=1, gid="crossing")
        axes.set_xscale("log")
        axes.set_xlabel("n (vectors)")
        sizes = list(dict.fromkeys(record["n"] for record in mine))
        axes.set_xticks(sizes, [f"{n:.0e}".replace("e+0", "e").replace("e+", "e") for n in sizes])
        axes.xaxis.set_minor_formatter(lambda value, position: "")
        style.cost_axis(axes.yaxis, "time (s)")
        axes.set_title(crossing_title(mine, costs), fontsize=8.5)
    sheet.legend()
    yield "cost", sheet.figure


def merge(pyplot, records: list[Record], heading: str) -> Iterator[tuple[str, object]]:
    """Merging two halves; then growth in parts."""
    yield from curves(
        pyplot, [record for record in records if not record["about"].get("parts")], heading + ": merging two halves"
    )
    grown = [record for record in records if record["about"].get("parts")]
    sets = by_set(grown)
    if not sets:
        return
    sheet = Sheet(pyplot, 2 * len(sets), ["part by part"], heading + ": growing part by part", grown, 2)
    for at, mine in enumerate(sets.values()):
        mine = sorted(mine, key=lambda record: record["about"]["parts"])
        parts = [record["about"]["parts"] for record in mine]
        for axes, values, label in (
            (sheet.panels[2 * at], [record["buildtime"] for record in mine], "time (s)"),
            (sheet.panels[2 * at + 1], [record["recall"]["10"] for record in mine], "Recall@10"),
        ):
            axes.plot(parts, values, **sheet.marks.of("part by part"))
            axes.set_xscale("log", base=2)
            axes.set_xticks(parts, [str(part) for part in parts])
            axes.set_xlabel("parts (1: one build of all)")
            axes.set_ylabel(label)
            axes.ticklabel_format(axis="y", useOffset=False)
            axes.set_title(title_of(mine[0]))
        sheet.panels[2 * at].set_ylim(bottom=0)
        least = min(record["recall"]["10"] for record in mine)
        sheet.panels[2 * at + 1].set_ylim(least - max(0.0005, (1 - least) / 4), 1 + max(0.0002, (1 - least) / 10))
    yield "parts", sheet.figure


FIGURES: dict[str, Callable] = {
    "convergence": convergence,
    "million": curves,
    "scale10m": curves,
    "merge": merge,
    "crossing": crossing,
}
