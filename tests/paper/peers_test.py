# SPDX-License-Identifier: MIT
# ruff: noqa: PT009, PT027
"""The scripts of peers and what calls them, with stand-ins for the peers' packages: they compare all pairs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchs/paper"))

import datasets  # noqa: E402
import drivers  # noqa: E402
import tools  # noqa: E402
from datasets import Dataset  # noqa: E402
from experiments import experiments  # noqa: E402
from peer_list import PEERS  # noqa: E402
from points import Context, Point  # noqa: E402

K, N = 12, 300
SHARED = """
import numpy as np
def nearest(x, k, cosine=False):  # itself first
    x = np.asarray(x, np.float32)
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if cosine else x
    d = ((x[:, None] - x[None]) ** 2).sum(2)
    return np.argsort(d, 1, kind="stable")[:, :k]
class Keep:
    def __init__(self, **given): self.__dict__.update(given)
"""
STANDINS = {
    "pynndescent.py": """
from standin import nearest
__version__ = "9.1"
class NNDescent:
    def __init__(self, x, metric, n_neighbors, **given):
        self.neighbor_graph = (nearest(x, n_neighbors, metric == "cosine"), None)
""",
    "pipnn.py": """
import numpy as np
from standin import Keep, nearest
class PiPNNTransformer:
    def __init__(self, k, metric, beam_L, runs, **given): self.k, self.metric = k, metric
    def fit_transform(self, x):
        ids = nearest(x, self.k + 1, self.metric == "cosine")[:, 1:]
        ranks = np.tile(np.arange(self.k), len(x))
        return Keep(indptr=np.arange(len(x) + 1) * self.k, indices=ids[:, ::-1].ravel(), data=ranks[::-1])
""",
    "pipnn-9.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: pipnn\nVersion: 9.2\n",
    "cuvs/__init__.py": '__version__ = "9.3"\n',
    "cuvs/neighbors/__init__.py": "from . import all_neighbors, ivf_pq, nn_descent\n",
    "cuvs/neighbors/nn_descent.py": """
from standin import Keep, nearest
IndexParams = Keep
def build(params, x):
    assert params.intermediate_graph_degree == 2 * params.graph_degree and params.max_iterations in (5, 10, 20)
    return Keep(graph=nearest(x, params.graph_degree + 1, params.metric == "cosine")[:, 1:])
""",
    "cuvs/neighbors/ivf_pq.py": "from standin import Keep\nIndexParams = Keep\n",
    "cuvs/neighbors/all_neighbors.py": """
from standin import Keep, nearest
AllNeighborsParams = Keep
def build(x, k, params, indices):
    assert (params.ivf_pq_params is not None) == (params.algo == "ivf_pq")
    indices[:] = nearest(x, k, params.metric == "cosine")
""",
    "flashlib/__init__.py": '__version__ = "9.4"\n',
    "flashlib/primitives/__init__.py": "",
    "flashlib/primitives/knn.py": """
from standin import nearest
import torch
def flash_knn(x, y, k, return_distances):
    assert x is y and not return_distances
    return torch.Tensor(nearest(x.x, k))
""",
    "torch.py": """
import numpy as np
from standin import Keep
float16, bfloat16, float32 = "float16", "bfloat16", "float32"
class Tensor:
    def __init__(self, x): self.x = x
    def to(self, what): return self
    def cpu(self): return self
    def numpy(self): return self.x
def from_numpy(x): return Tensor(x)
nn = Keep(functional=Keep(normalize=lambda t: Tensor(t.x / np.linalg.norm(t.x, axis=1, keepdims=True))))
""",
}


class Peers(unittest.TestCase):
    """Each setting of each, as the experiments and the scripts of shell run it."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        for name, text in {"standin.py": SHARED, **STANDINS}.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.base = self.folder / "set.fbin"
        x = np.random.default_rng(3).normal(size=(N, 8)).astype(np.float32)
        self.base.write_bytes(np.array(x.shape, np.int32).tobytes() + x.tobytes())
        path = mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder)})
        path.start()
        self.addCleanup(path.stop)
        self.tools = tools.Tools(self.folder, self.folder, "cuda:0", 60, False)

    def test_all_are_driven(self) -> None:
        for metric in ("l2", "cosine"):
            data = Dataset("set", "hard:gauss:{n}:8", N, metric)
            for version, (name, peer) in enumerate(PEERS.items(), 1):
                self.assertEqual(self.tools.missing(name), "")
                for series, setting in peer.settings[-1:] if metric == "cosine" else peer.settings:
                    with self.subTest(f"{name} {setting} {metric}"):
                        point = Point(series, data, name, setting, k=K, queries=100, repeat=2)
                        found = drivers.peer(self.tools, [point], self.base)[point.key]
                        self.assertEqual((found["repeats"], found["version"]), (2, f"9.{version}"))
                        self.assertEqual(found["recall"], {"1": 1.0, "10": 1.0, "12": 1.0, "k": 1.0})
                        self.assertTrue(found["recall_source"].startswith("100 objects"))

    def test_what_is_not_installed_is_said(self) -> None:
        half = dataclasses.replace(PEERS["flashlib"], modules=("flashlib", "module_of_nobody"))
        with mock.patch.dict(PEERS, flashlib=half):
            self.assertEqual(self.tools.missing("flashlib"), "flashlib, module_of_nobody is not installed")
        (self.folder / "cuvs/neighbors/nn_descent.py").write_text("raise ImportError('no driver')")
        point = Point("cuVS", Dataset("set", "x", N), "cuvs", k=K)
        with self.assertRaisesRegex(tools.ToolError, "no driver"):
            drivers.peer(self.tools, [point], self.base)

    def test_experiments_take_all_of_them(self) -> None:
        library = datasets.Library(None, [], self.folder / "cache", lambda text: None)
        for gpu in (False, True):
            for name in ("million", "scale10m"):
                points = experiments()[name].points(Context(library, gpu, False, 1_000_000))
                asked = {(p.tool, p.series, p.configuration) for p in points if p.tool in PEERS}
                wanted = {
                    (peer_name, *setting)
                    for peer_name, peer in PEERS.items()
                    if gpu or peer.device == "cpu"
                    for setting in peer.settings
                }
                self.assertEqual(asked, wanted)

    def compare(self, *options: str) -> subprocess.CompletedProcess:
        """compare_gpu.sh with a build_bench that prints one line."""
        line = {"method": "gnnd", "configuration": "method=gnnd", "data": "set.fbin", "n": N, "d": 8, "k": K}
        bench = self.folder / "build_bench"
        told = json.dumps({**line, "seconds": 0.5, "recall@10": 0.99})
        bench.write_text(f"#!/bin/sh\necho '{told}'\n")
        bench.chmod(0o755)
        environment = {**os.environ, "PYTHON": sys.executable, "BUILD_BENCH": str(bench)}
        return subprocess.run(
            ["bash", REPOSITORY / "benchs/compare_gpu.sh", self.base, "-k", str(K), "--repeat", "1", *options],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip

    def test_compare_gpu_runs_each_setting(self) -> None:
        (self.folder / "pipnn.py").write_text("raise ImportError('no pipnn here')")
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stderr)
        methods = [json.loads(text)["method"] for text in done.stdout.splitlines() if text.startswith("{")]
        counts = {name: methods.count(name) for name in set(methods)}
        self.assertEqual(counts, {"gnnd": 3, "pynndescent": 1, "cuVS": 6, "FlashLib": 2})
        self.assertIn("pipnn --runs 1 --beam 48 left out: ImportError: no pipnn here", done.stderr)
        self.assertIn("| set.fbin | 300 x 8 | -, - | gnnd | method=gnnd | 12 | 0.5 | 0 |  | 0.9900 |  |", done.stdout)

    def test_tables_of_what_are_no_lines(self) -> None:
        script, path = REPOSITORY / "benchs/paper/table.py", self.folder / "lines"
        for text, said in (
            ("", "no results in"),
            ("{}", "is no output of"),
            ("x", "is no output of"),
            (None, "No such"),
        ):
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
            done = subprocess.run([sys.executable, script, path], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)

    def test_compare_gpu_on_a_cpu_and_what_it_refuses(self) -> None:
        done = self.compare("--device", "cpu", "--only", "gnnd,cuvs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("cuvs left out: it needs a GPU"), 1)
        done = self.compare("--only", "cuml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("known are gnnd, faiss, pynndescent, pipnn, cuvs, flashlib", done.stderr)


class Recalls(unittest.TestCase):
    """peers.recalls, against sorted distances."""

    def test_of_wrong_missing_and_double_neighbours(self) -> None:
        import peers

        x = np.random.default_rng(5).normal(size=(200, 6)).astype(np.float32)
        distances = ((x[:, None] - x[None]) ** 2).sum(2)
        np.fill_diagonal(distances, np.inf)
        order = np.argsort(distances, 1)
        ids = order[:, :10].copy()
        self.assertEqual(peers.recalls(x, ids, 200, [1, 10], "l2"), ({"recall@1": 1.0, "recall@10": 1.0}, 200))
        ids[:, 9] = order[:, 50]  # too far
        ids[:, 5] = -1  # there is none
        ids[:, 3] = ids[:, 2]  # stands there twice
        found, _ = peers.recalls(x, ids, 200, [1, 10], "l2")
        self.assertAlmostEqual(found["recall@10"], 0.7)
        with mock.patch.object(peers, "AT_ONCE", 1000):
            self.assertEqual(peers.recalls(x, ids, 200, [1, 10], "l2")[0], found)


if __name__ == "__main__":
    unittest.main()
