#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over files, but not over those that passed before as they are: with the same text when preprocessed,
its comments included (NOLINT is one), the same command line, checks and clang-tidy. What passed is kept in
~/.cache/gnnd/tidy.

Usage: contrib/tidy.py BUILD FILE...    BUILD: a folder with compile_commands.json
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KEPT_SECONDS = 60 * 24 * 3600.0  # what passed and was not asked for since

root = Path(__file__).resolve().parent.parent
passed = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gnnd" / "tidy"
tidy = os.path.realpath(
    shutil.which("clang-tidy") or sys.exit("tidy.py: no clang-tidy; contrib/setup.sh lint installs it")
)
clang = Path(tidy).with_name("clang")  # it sees what clang-tidy sees; without it every file is checked
checks = hashlib.sha256(subprocess.run([tidy, "--version"], check=True, capture_output=True).stdout)
checks.update(Path(tidy).read_bytes() + (root / ".clang-tidy").read_bytes())


def key_of(command: str, folder: str) -> str | None:
    """Of all that decides on the result, wherever the tree lies. None: it cannot be told, so the file is checked."""
    words = shlex.split(command)
    # Before the options stand the compiler and what launches it; behind them the object's name, which says nothing.
    options = words[next(i for i, word in enumerate(words) if word.startswith("-")) : words.index("-o")]
    arguments = [*options, words[-1]]
    # clang-tidy defines the macro, too.
    text = subprocess.run([clang, "-E", "-CC", "-D__clang_analyzer__=1", *arguments], cwd=folder, capture_output=True)
    if text.returncode != 0:
        return None
    hashed = checks.copy()
    for part in ("\0".join(arguments).encode(), text.stdout):
        hashed.update(part.replace(os.fsencode(root), b".") + b"\0")
    return hashed.hexdigest()


def check(file: str) -> bool:
    entry = entries.get(file)  # none: clang-tidy takes the command of a file with a similar name
    key = key_of(entry["command"], entry["directory"]) if entry and clang.exists() else None
    mark = passed / key if key else None
    if mark and mark.exists():
        mark.touch()
        return True
    run = subprocess.run([tidy, "-p", sys.argv[1], "--quiet", file], capture_output=True, text=True)
    told = [line for line in (run.stdout + run.stderr).splitlines() if not line.endswith("generated.")]
    if told or run.returncode:
        print("\n".join(told), flush=True)
    elif mark:
        mark.touch()
    return run.returncode == 0


entries = {entry["file"]: entry for entry in json.loads((Path(sys.argv[1]) / "compile_commands.json").read_bytes())}
passed.mkdir(parents=True, exist_ok=True)
for mark in passed.iterdir():
    if time.time() - mark.stat().st_mtime > KEPT_SECONDS:
        mark.unlink(missing_ok=True)
with ThreadPoolExecutor(os.cpu_count()) as threads:
    results = list(threads.map(check, (str(root / file) for file in sys.argv[2:])))
sys.exit(0 if all(results) else 1)
