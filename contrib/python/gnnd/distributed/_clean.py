# SPDX-License-Identifier: MIT
"""What a build leaves when its graph is finished."""

from __future__ import annotations

import contextlib
import re

from ._plan import BUILD, SAMPLE, finished
from ._storage import Storage
from ._threads import in_threads

_THREADS = 8

# The files that builds write beside records and leases, whole or not.
_MADE = re.compile(
    r"((local|nearest|lists|result)-\d{5}[.\w-]*\.gnnd|(planes|borders|cells|rows|parts)(-\d{5})?-[0-9a-f]{12}\.bin)(\.tmp\..*)?"
    r"|[a-z]+\.(json|bin)\.tmp\.[0-9a-f]{12}"
)


def clean_up(storage: Storage) -> None:
    """Of a finished graph: what its end has not deleted, since it was ended itself."""
    manifest = finished(storage)
    if manifest is not None and storage.read(BUILD) is not None:
        clean(storage, {name for name, _, _ in manifest.files})


def clean(storage: Storage, keep: set[str]) -> None:
    """Deletes what is not part of the finished graph. Records go before what they tell of, the plan last. By several
    threads: the system takes a second for 7 GB in memory, an object store some time for each request."""
    with contextlib.suppress(OSError):  # what stays does no harm
        for folder in ("done", "leases"):
            in_threads(_THREADS, storage.delete, [f"{folder}/{name}" for name in storage.names(folder)])
        in_threads(_THREADS, storage.delete, filter(_MADE.fullmatch, storage.names() - keep))
        for name in (SAMPLE, BUILD):
            storage.delete(name)
