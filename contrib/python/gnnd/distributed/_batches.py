# SPDX-License-Identifier: MIT
"""The batches of merges: what one process has chosen all follow. A choice cannot be made again as it was, since lists
go on from it, so that it is kept twice; and lists that follow another one have other names, and do not count."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ._plan import MANIFEST, seal, unseal
from ._schedule import Batch, Pair
from ._storage import Damaged, Storage


class Batches:
    """Those of one build, as far as they are chosen."""

    def __init__(self, storage: Storage, build: str) -> None:
        self._storage, self._build = storage, build
        self._known: list[Batch] = []

    def known(self, names: set[str]) -> tuple[Batch, ...]:
        """In their order. What is altered of one is written anew from its copy; where both are it counts no more.

        :param names: of the records that are there
        """
        number = 0
        while True:
            number += 1
            files = {name for name in names if name.partition(".")[0] == self._name(number) and ".tmp." not in name}
            if number <= len(self._known) and files == set(self._files(number, self._known[number - 1])):
                continue
            del self._known[number - 1 :]
            batch = self._read(number, files)
            if batch is None:
                return tuple(self._known)
            self._known.append(batch)

    def choose(self, number: int, merges: list[Pair], recall: dict[str, Any]) -> None:
        """Makes this the next batch, unless another was faster.

        :param merges: none: it is enough
        """
        content = {
            "what": self._name(number),
            "build": self._build,
            "before": self._chain_before(number),
            "merges": merges,
            "recall": recall,
        }
        self._storage.create(f"done/{self._name(number)}", seal(content))
        self.known(self._storage.names("done"))  # whosever it is

    def _name(self, number: int) -> str:
        return f"batch-{number:05d}"

    def _files(self, number: int, batch: Batch) -> tuple[str, str]:
        """The record and its copy, whose name tells the choice: so that names alone tell when it is another."""
        return self._name(number), f"{self._name(number)}.{batch.chain}"

    def _chain_before(self, number: int) -> str:
        return self._known[number - 2].chain if number > 1 else ""

    def _read(self, number: int, files: set[str]) -> Batch | None:
        """The batch, which is there twice and nothing else when it returns."""
        stored = {name: self._storage.read(f"done/{name}") for name in sorted(files)}  # the record before copies
        batch, written = None, []
        for data in stored.values():
            batch = None if data is None else self._parsed(data, number)
            if batch is not None and data is not None:
                written = [name for name in self._files(number, batch) if stored.pop(name, None) != data]
                for name in written:
                    self._storage.replace(f"done/{name}", data)
                break
        too_late = written and self._storage.read(MANIFEST) is not None  # all was finished meanwhile, and cleaned up
        for name in {*stored, *(self._files(number, batch) if batch and too_late else ())}:
            self._storage.delete(f"done/{name}")
        return batch

    def _parsed(self, data: bytes, number: int) -> Batch | None:
        """None where it is altered, or none of this build, or follows another choice than is known."""
        what, before = self._name(number), self._chain_before(number)
        try:
            content = unseal(data, what)
            if (content["what"], content["build"], content["before"]) != (what, self._build, before):
                return None
            merges = tuple((int(first), int(second)) for first, second in content["merges"])
            chain = hashlib.blake2b(json.dumps([before, merges]).encode(), digest_size=4).hexdigest()
            return Batch(merges, chain, dict(content["recall"]))
        except (Damaged, KeyError, TypeError, ValueError):
            return None
