# SPDX-License-Identifier: MIT
"""The results of an experiment as a Markdown table."""

from __future__ import annotations

from results import OK

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
