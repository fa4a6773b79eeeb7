# SPDX-License-Identifier: MIT
"""The looks of all figures: marks that differ in shape, line and lightness, so that they read in grey, too; axes of
recall; Pareto fronts; and files that are the same to the byte for the same results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

# Colours of Okabe and Ito in an order in which neighbours differ in lightness.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#7F7F7F", "#B8B000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")
DPI = 110


def use():
    """matplotlib without a screen, set up. Raises ImportError where it is missing."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "gnnd",
            "font.size": 9,
            "axes.titlesize": 9.5,
            "legend.fontsize": 8,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "lines.markersize": 5,
            "lines.linewidth": 1.4,
        }
    )
    from matplotlib import pyplot

    return pyplot


class Marks:
    """The same look for the same name in all panels of a figure."""

    def __init__(self, names: Iterable[str]):
        self.names = list(dict.fromkeys(names))

    def of(self, name: str) -> dict:
        """Arguments of plot()."""
        at = self.names.index(name)
        return {
            "color": COLOURS[at % len(COLOURS)],
            "marker": MARKERS[at % len(MARKERS)],
            "linestyle": LINES[at % len(LINES)],
        }


def pareto(points: Iterable[tuple[float, float]], more_is_better: bool = False) -> list[tuple[float, float]]:
    """Of (recall, cost) those that no other beats in both, by recall ascending; or of (recall, speed)."""
    sign = -1 if more_is_better else 1
    front: list[tuple[float, float]] = []
    for recall, value in sorted(points, key=lambda point: (-point[0], sign * point[1])):
        if not front or sign * value < sign * front[-1][1]:
            front.append((recall, value))
    return front[::-1]


def recall_axis(axes, label: str, floor: float | None = None) -> None:
    """Of 1 - recall, the best on the right: towards 1 every digit counts as much as the one before it. `floor` is the
    place of a recall of 1."""
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.invert_xaxis()

    def text(missing: float, _position=None) -> str:
        if floor is not None and missing <= floor * 1.001:
            return "1"
        return f"{1 - missing:.6g}"

    axes.xaxis.set_major_formatter(text)
    axes.xaxis.set_minor_formatter(lambda missing, position: "")
    if floor is not None:
        low, high = axes.get_xlim()[::-1]
        axes.set_xlim(max(high, floor * 20), floor / 1.6)
        decades = []
        step = 1.0
        while step > floor * 4:
            if step <= max(high, low, floor * 20):
                decades.append(step)
            step /= 10
        axes.set_xticks([*decades, floor])


def cost_axis(axis, label: str) -> None:
    """A logarithmic axis with its ticks in plain numbers, once all is drawn on it."""
    from matplotlib import ticker

    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}label": label})
    low, high = axis.get_view_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter(
        lambda value, _position: f"{value:,.0f}" if value >= 1 and value == int(value) else f"{value:g}"
    )
    axis.set_minor_formatter(ticker.NullFormatter())


def numbers(figure) -> list[dict]:
    """The contents of a figure, read from its axes: labels, scales, lines and bars."""
    panels = []
    for axes in figure.axes:
        lines = [
            {
                "label": line.get_label(),
                "gid": line.get_gid(),
                "x": [float(x) for x in line.get_xdata()],
                "y": [float(y) for y in line.get_ydata()],
            }
            for line in axes.get_lines()
        ]
        bars = [
            {
                "x": float(bar.get_x()),
                "y": float(bar.get_y()),
                "width": float(bar.get_width()),
                "height": float(bar.get_height()),
            }
            for bar in axes.patches
        ]
        panels.append(
            {
                "title": axes.get_title(),
                "xlabel": axes.get_xlabel(),
                "ylabel": axes.get_ylabel(),
                "xscale": axes.get_xscale(),
                "yscale": axes.get_yscale(),
                "lines": lines,
                "bars": bars,
            }
        )
    return panels


def save(figure, path: Path) -> None:
    """As path.svg, path.png, and path.json with the numbers that it shows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), bbox_inches="tight", dpi=DPI, metadata={"Software": None})
    path.with_suffix(".json").write_text(json.dumps(numbers(figure), indent=1) + "\n", encoding="utf-8")
