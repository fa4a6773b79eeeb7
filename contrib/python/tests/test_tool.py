# SPDX-License-Identifier: MIT
"""`python -m gnnd` and the script `gnnd`: the command-line tool in Python's process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

import gnnd
from gnnd import _native

TOOL = [sys.executable, "-m", "gnnd"]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """The tool with these arguments, what it prints and its exit code."""
    return subprocess.run(
        [*TOOL, *map(os.fspath, map(str, arguments))], capture_output=True, text=True, timeout=300, **options
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 vectors of 32 components in a file."""
    path = tmp_path_factory.mktemp("tool") / "base.npy"
    np.save(path, np.random.default_rng(3).normal(size=(3000, 32)).astype(np.float32))
    return path


@pytest.fixture(scope="module")
def graph(base: Path) -> Path:
    path = base.with_name("base.gnnd")
    built = run("build", base, "-k", 12, "-o", path, "-q")
    assert (built.returncode, built.stderr) == (0, "")
    return path


def test_build_and_eval(base: Path, graph: Path) -> None:
    told = json.loads(run("eval", graph, base, "--queries", 0, "--json").stdout)
    assert told["truth"] == "exhaustive"
    assert told["recall"] >= 0.98
    loaded = gnnd.load(graph)
    assert (loaded.n, loaded.k) == (3000, 12)
    exact = gnnd.build_exact(np.load(base), k=10)
    right = sum(len(set(loaded.ids[i, :10].tolist()) & set(exact.ids[i].tolist())) for i in range(3000))
    assert right / 30_000 == pytest.approx(told["recall"], abs=1e-6)  # no ties among Gaussian vectors


def test_exact_is_exact(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "exact.gnnd"
    assert run("exact", base, "-k", 7, "-o", path).returncode == 0
    np.testing.assert_array_equal(gnnd.load(path).ids, gnnd.build_exact(np.load(base), k=7).ids)


def test_merge_append_refine_convert_info(base: Path, graph: Path, tmp_path: Path) -> None:
    both, more, better, ids = (tmp_path / name for name in ("both.gnnd", "more.gnnd", "better.gnnd", "ids.ivecs"))
    assert run("merge", graph, base, graph, base, "-o", both, "-q").returncode == 0
    assert run("append", graph, base, base, "-o", more, "-q").returncode == 0
    assert run("refine", graph, base, "-o", better, "-q").returncode == 0
    assert gnnd.load(both).n == gnnd.load(more).n == 6000
    assert run("convert", graph, ids).returncode == 0
    np.testing.assert_array_equal(gnnd.read_vectors(ids), gnnd.load(graph).ids)
    assert json.loads(run("info", graph, "--json").stdout)["n"] == 3000


def test_help_version_man_completion() -> None:
    for arguments in (["--help"], ["build", "--help"], ["--version"], ["man"], ["completion", "bash"]):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert done.stdout
    told = run("--help").stdout
    assert "built without FAISS" in told
    assert "  index " not in told and "  search " not in told
    cuda = "" if "no CUDA backend" in _native.device_count()[1] else r", CUDA \d+\.\d+"
    assert re.fullmatch(rf"gnnd {gnnd.__version__} \(without FAISS{cuda}\)\n", run("--version").stdout)
    assert "index" not in run("completion", "bash").stdout.split("words='")[1].split("'")[0].split()


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "{graph}", "{base}", "-o", "{out}"],
        ["search", "{graph}", "{base}", "--nonsense"],
        ["build", "{base}", "--method", "ivfpq", "-o", "{out}"],
        ["build", "{base}", "--method", "exact", "-o", "{out}"],
        ["eval", "{graph}", "{base}", "--truth", "faiss"],
        ["exact", "{base}", "--queries", "{base}", "-o", "{out}"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + [one for one in arguments if one.startswith("--")]),
)
def test_what_needs_faiss_says_so(arguments: list[str], base: Path, graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*(one.format(base=base, graph=graph, out=out) for one in arguments))
    assert done.returncode == 2
    assert "this gnnd was built without FAISS" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_exit_codes(base: Path, tmp_path: Path) -> None:
    assert run().returncode == 2
    assert run("bulid").returncode == 2
    unknown = run("build", base, "--nlist", 3, "-o", tmp_path / "x")
    assert unknown.returncode == 2 and "no such option: --nlist" in unknown.stderr
    refused = run("build", base, "--method", "exhaustive", "--iterations", 3, "-o", tmp_path / "x")
    assert refused.returncode == 2 and "has no meaning for --method exhaustive" in refused.stderr
    missing = run("info", tmp_path / "missing.gnnd")
    assert missing.returncode == 1 and missing.stderr.startswith("gnnd: ")
    with open("/dev/full", "w") as nowhere:
        full = subprocess.run([*TOOL, "info", base], stdout=nowhere, stderr=subprocess.PIPE, text=True)
    assert full.returncode == 1 and "standard output" in full.stderr


def test_names_that_are_no_text(base: Path, tmp_path: Path) -> None:
    """File names are bytes, in whatever encoding."""
    name = os.fsencode(tmp_path) + b"/b\xff\xfe.npy"
    Path(os.fsdecode(name)).write_bytes(base.read_bytes())
    done = subprocess.run([*TOOL, "info", name], capture_output=True)
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(number: signal.Signals, tmp_path: Path) -> None:
    """The process dies of the signal, as a shell's loop expects, and no file is left."""
    vectors, out = tmp_path / "large.npy", tmp_path / "out"
    out.mkdir()
    np.save(vectors, np.random.default_rng(0).random((300_000, 64), np.float32))

    def as_in_a_terminal() -> None:  # in the background of a script SIGINT is ignored, under nohup SIGHUP, and stays so
        signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(
        [*TOOL, "exact", vectors, "-k", "32", "-o", out / "x.gnnd", "--device", "cpu"],  # a GPU is done too soon
        stderr=subprocess.PIPE,
        preexec_fn=as_in_a_terminal,
    ) as process:
        while process.poll() is None and not _catches(process.pid, signal.SIGTERM):
            time.sleep(0.01)  # until the tool has its handlers; of SIGINT Python has one of its own before
        begun = _seconds_of(process.pid)
        while process.poll() is None and _seconds_of(process.pid) < begun + 0.5:
            time.sleep(0.01)  # until it is at work, which takes minutes of a processor
        process.send_signal(number)
        told = process.communicate(timeout=600)[1].decode()
    assert process.returncode == -number, told
    assert told == "gnnd: interrupted, nothing was written\n"
    assert list(out.iterdir()) == []


def _catches(process: int, number: signal.Signals) -> bool:
    """Whether it has a handler for the signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), re.M)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def _seconds_of(process: int) -> float:
    """Processor time that it has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_reader_that_wants_no_more(graph: Path) -> None:
    with subprocess.Popen([*TOOL, "man"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        told = process.stderr.read() if process.stderr else b""
    assert process.returncode in (-signal.SIGPIPE, 0)
    assert told == b""


def test_the_script_is_the_tool() -> None:
    if not Path(gnnd.__file__).is_relative_to(sysconfig.get_path("platlib")):
        pytest.skip("installed elsewhere than where this interpreter has its scripts")
    script = Path(sysconfig.get_path("scripts")) / "gnnd"
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout == run("--version").stdout
