# SPDX-License-Identifier: MIT
"""The programs that measure: where they are, whether they are there, and how they are run."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


sys.path.append(str(REPOSITORY / "benchs"))

from peer_list import PEERS  # noqa: E402

CAGRA = REPOSITORY / "benchs/python_cagra.py"


class ToolError(Exception):
    """A tool failed; the message is what it said."""


class Tools:
    """The programs of a build folder."""

    def __init__(self, build: Path, scratch: Path, device: str, timeout: float, keep_graphs: bool):
        self.build, self.scratch, self.device, self.timeout = build, scratch, device, timeout
        self.keep_graphs = keep_graphs
        self.until = float("inf")  # time.monotonic() when everything is to end
        self.late = ""  # what took too long, of the last call

    @property
    def no_time_is_left(self) -> bool:
        """True once everything is to end."""
        return time.monotonic() >= self.until

    def path(self, name: str) -> Path:
        """Of a program."""
        return self.build / ("bin" if name == "gnnd" else "benchs") / name

    def missing(self, tool: str) -> str:
        """Why points of this tool cannot be measured here; empty: they can."""
        if tool in PEERS:
            modules = PEERS[tool].modules
            test = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in {modules!r}))"
            return "" if self._python(test) else f"{', '.join(modules)} is not installed"
        if tool == "cagra":
            there = self._python("import faiss, gnnd.faiss, sys; sys.exit(not hasattr(faiss, 'GpuIndexCagra'))")
            return "" if there else "CAGRA needs gnnd's Python package and PyPI's faiss-gpu-cuvs: one is not installed"
        program = "gnnd" if tool == "gnnd" else tool
        return "" if self.path(program).is_file() else f"{self.path(program)} is not built"

    @staticmethod
    def _python(text: str) -> bool:
        """True if it ends well, in a process of its own."""
        return subprocess.run([sys.executable, "-c", text], check=False, capture_output=True).returncode == 0

    def call(self, command: list, threads: int = 0) -> list[dict]:
        """Runs it; the JSON objects that it prints. Where it takes too long it is ended, `late` says so, and what it
        had printed by then comes back. Raises ToolError with the end of what it said where it fails."""
        environment = dict(os.environ)
        if threads > 0:
            environment["OMP_NUM_THREADS"] = str(threads)
        command = [str(part) for part in command]
        self.late = ""
        seconds = max(0.1, min(self.timeout, self.until - time.monotonic()))
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment, timeout=seconds
            )
        except subprocess.TimeoutExpired as late:
            self.late = f"{Path(command[0]).name}: took longer than {seconds:.0f} s"
            said = late.stdout or b""  # bytes, although text was asked for
            return _objects(said.decode(errors="replace") if isinstance(said, bytes) else said)
        if done.returncode != 0:
            said = done.stderr.strip()[-400:] or f"ended with status {done.returncode}"
            raise ToolError(f"{Path(command[0]).name}: {said}")
        return _objects(done.stdout)

    @functools.cached_property
    def faiss(self) -> str:
        """The version of FAISS that these programs hold, as `gnnd --version` tells it; unknown where it does not."""
        return self._version("FAISS")

    @functools.cached_property
    def cuda(self) -> str:
        """The same of the CUDA that they were compiled with."""
        return self._version("CUDA")

    def _version(self, name: str) -> str:
        said = re.search(name + r" (\d[0-9.]*)", self.text([self.path("gnnd"), "--version"]))
        return said.group(1) if said else "unknown"

    def where(self, device: str) -> dict:
        """The fields of a record that tell where a point was measured by these programs."""
        return {"device": device, **({} if device == "cpu" else {"cuda": self.cuda})}

    def text(self, command: list) -> str:
        """Runs it, what it prints as it is."""
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(done.stderr.strip()[-400:])
        return done.stdout


def _objects(text: str) -> list[dict]:
    """JSON objects, one a line or one over several lines; what else is said is passed over."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        found.append(value)
    return found


def nothing_about(tools: Tools, tool: str, configuration: str) -> None:
    """Nothing was said about a point, which is right where the tool was ended before. Else raises ToolError."""
    if not tools.late:
        raise ToolError(f"{tool} printed nothing about {configuration}")
