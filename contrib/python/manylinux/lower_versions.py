#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a shared object ask for the symbol versions of an older glibc.

The linker binds every function to the newest version that this machine's glibc has of it: pthread_create to that of
2.34, which moved it from libpthread to libc. The older version is still there, for programs of that time, and does the
same for callers that pass what it knew. So each undefined symbol whose version is newer than the limit gets the newest
one that is not: its entry in .gnu.version and the records of .gnu.version_r are changed in place. Functions that an
older glibc lacks altogether are an error that names them: see shims.c. Needs patchelf.

Usage: lower_versions.py FILE [--glibc 2.28]
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DYNSYM, VERDEF, VERNEED, VERSYM = 11, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF  # types of sections
HIDDEN = 0x8000  # bit of an entry of .gnu.version

# In glibc before 2.34 these were libraries of their own. Later ones have them, empty, for programs of that time.
FORMER_LIBRARIES = ["libpthread.so.0", "libdl.so.2"]


@dataclass
class Record:
    """A version that is asked of a library: an entry of .gnu.version_r."""

    offset: int  # of the entry in the file
    library: str
    index: int  # that entries of .gnu.version have
    version: str


class Elf:
    """The dynamic symbols of a 64-bit little-endian ELF file, and their versions."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, bytearray(path.read_bytes())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"lower_versions.py: {path}: not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * size) for i in range(count)]
        self.sections = {section[1]: section for section in sections}
        if not {DYNSYM, VERSYM} <= self.sections.keys():
            raise SystemExit(f"lower_versions.py: {path}: no dynamic symbols with versions")
        self.strings = sections[self.sections[DYNSYM][6]][4:6]

    def text(self, at: int) -> str:
        begin = self.strings[0] + at
        return self.data[begin : self.data.index(b"\0", begin)].decode()

    def place_of(self, text: str) -> int | None:
        """The offset of the text in .dynstr; None where it is not there."""
        begin, size = self.strings
        at = self.data.find(text.encode() + b"\0", begin, begin + size)
        return None if at < 0 else at - begin

    def symbols(self) -> list[tuple[int, str, bool]]:
        """Of each: where its version stands in the file, its name, whether it is defined here."""
        _, _, _, _, begin, size, *_ = self.sections[DYNSYM]
        versions = self.sections[VERSYM][4]
        found = []
        for i in range(size // 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, begin + 24 * i)
            found.append((versions + 2 * i, self.text(name), section != 0))
        return found

    def version_at(self, offset: int) -> int:
        return struct.unpack_from("<H", self.data, offset)[0]

    def needed(self) -> list[Record]:
        records: list[Record] = []
        if VERNEED not in self.sections:
            return records
        at = self.sections[VERNEED][4]
        while True:
            _, count, library, first, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                records.append(Record(entry, self.text(library), index & ~HIDDEN, self.text(name)))
                entry += step
            if following == 0:
                return records
            at += following

    def defined(self) -> dict[str, set[str]]:
        """The versions that the library has of each of its symbols."""
        names, at = {}, self.sections[VERDEF][4]
        while True:
            _, _, index, _, _, first, following = struct.unpack_from("<HHHHIII", self.data, at)
            names[index] = self.text(struct.unpack_from("<I", self.data, at + first)[0])
            if following == 0:
                break
            at += following
        versions: dict[str, set[str]] = {}
        for offset, name, is_defined in self.symbols():
            if is_defined:
                versions.setdefault(name, set()).add(names.get(self.version_at(offset) & ~HIDDEN, ""))
        return versions

    def rename(self, record: Record, version: str) -> None:
        """Lets the record ask for another version, whose name stands in .dynstr already."""
        place = self.place_of(version)
        if place is None:
            raise SystemExit(f"lower_versions.py: {self.path}: no text '{version}' in .dynstr to name a version by")
        struct.pack_into("<I", self.data, record.offset, elf_hash(version))
        struct.pack_into("<I", self.data, record.offset + 8, place)
        record.version = version


def elf_hash(name: str) -> int:
    """The hash of names in the System V ABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def number(version: str) -> tuple[int, ...]:
    """(2, 34) of "GLIBC_2.34"; what is no version of glibc counts as old."""
    prefix, _, rest = version.partition("_")
    return tuple(int(part) for part in rest.split(".")) if prefix == "GLIBC" and rest[:1].isdigit() else (0,)


def library_path(name: str) -> Path:
    """The path of that library of glibc, in the folder of the one that this process has mapped."""
    mapped = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    folders = [path.parent for path in mapped if path.name in ("libc.so.6", "libm.so.6")]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"lower_versions.py: no {name} beside this process's libc")


@dataclass
class Change:
    """A symbol that is to be asked for in an older version."""

    offset: int  # of its entry in .gnu.version
    name: str
    record: Record  # that it has
    version: str  # that it gets


def changes_of(elf: Elf, limit: tuple[int, ...]) -> list[Change]:
    """The changes after which no symbol is of a version that is newer than the limit."""
    too_new = {record.index: record for record in elf.needed() if number(record.version) > limit}
    libraries = {name: Elf(library_path(name)).defined() for name in {one.library for one in too_new.values()}}
    changes, missing = [], []
    for offset, name, is_defined in elf.symbols():
        record = too_new.get(elf.version_at(offset) & ~HIDDEN)
        if is_defined or record is None:
            continue
        older = [version for version in libraries[record.library].get(name, ()) if (0,) < number(version) <= limit]
        if older:
            changes.append(Change(offset, name, record, max(older, key=number)))
        else:
            missing.append(f"{name}@{record.version}")
    if missing:
        raise SystemExit(
            f"lower_versions.py: {elf.path}: not in glibc {'.'.join(map(str, limit))}: {', '.join(missing)}"
        )
    return changes


def prepare(elf: Elf, changes: list[Change]) -> None:
    """Lets the file need the libraries in which an older glibc has the symbols, and have the names of the versions."""

    def patchelf(option: str, names: list[str]) -> None:
        arguments = [argument for name in names for argument in (option, name)]
        subprocess.run(["patchelf", *arguments, str(elf.path)], check=True)

    # At once, for what patchelf moves again leaves an empty segment behind that the loader may refuse. The name of a
    # library that is taken out again stays in .dynstr.
    versions = sorted({change.version for change in changes if elf.place_of(change.version) is None})
    patchelf("--add-needed", FORMER_LIBRARIES + versions)
    if versions:
        patchelf("--remove-needed", versions)


def apply(elf: Elf, changes: list[Change], limit: tuple[int, ...]) -> None:
    """Changes the versions in the file's bytes."""
    records = elf.needed()
    free = [record for record in records if number(record.version) > limit]
    for change in changes:
        library = change.record.library
        found = next((one for one in records if (one.library, one.version) == (library, change.version)), None)
        if found is None:
            found = next((one for one in free if one.library == library), None)
            if found is None:
                raise SystemExit(f"lower_versions.py: {elf.path}: no record left for {change.version} of {library}")
            free.remove(found)
            elf.rename(found, change.version)
        struct.pack_into("<H", elf.data, change.offset, found.index)
    for record in free:  # nothing asks for them any more, but the loader would
        elf.rename(record, next(one.version for one in records if one.library == record.library and one not in free))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--glibc", default="2.28", help="the newest that may be asked for (default: %(default)s)")
    arguments = parser.parse_args()
    limit = tuple(int(part) for part in arguments.glibc.split("."))
    changes = changes_of(Elf(arguments.file), limit)
    if changes:
        prepare(Elf(arguments.file), changes)
        elf = Elf(arguments.file)
        changes = changes_of(elf, limit)  # everything stands elsewhere now
        apply(elf, changes, limit)
        arguments.file.write_bytes(elf.data)
    words = ", ".join(f"{change.name}@{change.version}" for change in changes)
    print(f"{arguments.file.name}: {len(changes)} symbols of older versions: {words or 'none'}", file=sys.stderr)


if __name__ == "__main__":
    main()
