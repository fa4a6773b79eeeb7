# SPDX-License-Identifier: MIT
"""An NVIDIA driver that is older than the CUDA in the package, which a small library stands in for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from gnnd import _native

# What the CUDA runtime asks of a driver before it asks for anything else.
DRIVER = """
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* version) { *version = 11040; return 0; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) { return 500; }
int cuGetExportTable(const void** table, const void* id) { return 500; }
int cuGetErrorString(int error, const char** text) { *text = "stand-in"; return 0; }
"""

PROGRAM = """
import json
import gnnd
import numpy as np

x = np.random.default_rng(0).normal(size=(300, 8)).astype("float32")
told = {"auto": gnnd.build(x, k=5).stats["device_reason"]}
try:
    gnnd.build(x, k=5, device="cuda")
except Exception as error:
    told["cuda"] = [type(error).__name__, str(error)]
print(json.dumps(told))
"""


@pytest.mark.skipif("no CUDA backend" in _native.device_count()[1], reason="this gnnd is without CUDA")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_is_named(tmp_path):
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert "driver is too old: it is made for CUDA 11.4" in told["auto"]
    kind, text = told["cuda"]
    assert kind == "RuntimeError" and told["auto"] in text
