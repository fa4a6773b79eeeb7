# SPDX-License-Identifier: MIT
"""Two workers in roots of their own, which share nothing but an object store."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shards import PATIENCE

pytest.importorskip("s3fs")
pytest.importorskip("moto")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "two_roots.sh"


@pytest.mark.disturbed
def test_two_roots():
    unshare, findmnt = shutil.which("unshare"), shutil.which("findmnt")
    if not unshare or not findmnt:
        pytest.skip("no unshare, or no findmnt")
    alone = [unshare, "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    if subprocess.run(alone, capture_output=True).returncode != 0:
        pytest.skip("this user may not make namespaces")
    done = subprocess.run([EXAMPLE, sys.executable], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = re.findall(r"is finished, (\d+) tasks of it done here", done.stderr)
    assert len(told) == 2 and sum(map(int, told)) >= 6 + 15 + 6 + 1
    assert re.search(r"^20000 x 10 in 6 shards, recall (1\.0|0\.99)", done.stdout, re.M)
