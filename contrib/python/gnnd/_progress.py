# SPDX-License-Identifier: MIT
"""Progress for people: a bar of tqdm where it is installed, lines on standard error otherwise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

Progress = Callable[[dict[str, Any]], object]


@contextlib.contextmanager
def shown(progress: bool | Progress | None, what: str) -> Iterator[Progress | None]:
    """Gives the function that a native one calls back; None where nothing is to be shown.

    :param progress: True shows a bar, a callable gets a dict after every iteration (see ``Graph.stats``)
    """
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress must be a bool or callable, not {type(progress).__name__}")
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda record: print(f"{what}: {_text(record)}", file=sys.stderr)
        return
    with tqdm(desc=what, unit="step") as bar:

        def update(record: dict[str, Any]) -> None:
            bar.total = record.get("tasks")
            bar.set_postfix_str(_text(record), refresh=False)
            bar.update(record["tasks_done"] - bar.n if "tasks" in record else 1)

        yield update


def _text(record: dict[str, Any]) -> str:
    if "tasks" in record:
        return f"{record['tasks_done']} of {record['tasks']} tasks, {record['seconds']:.1f} s"
    return f"iteration {record['iteration']}, {record['changed']} new, {record['seconds']:.3f} s"
