# SPDX-License-Identifier: MIT
"""The notebook runs as it stands, and tells what it has told before."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
for _library in ("umap", "scanpy", "faiss", "matplotlib", "ipykernel"):
    pytest.importorskip(_library)
NOTEBOOK = Path(__file__).parents[3] / "examples" / "tools.ipynb"


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs() -> None:
    if not NOTEBOOK.exists():
        pytest.skip("not in the repository")
    stored = nbformat.read(NOTEBOOK, 4)
    run = nbclient.NotebookClient(nbformat.read(NOTEBOOK, 4), timeout=1800, kernel_name="python3").execute()
    for before, after in zip(stored.cells, run.cells, strict=True):
        kinds = [[output.output_type for output in cell.get("outputs", [])] for cell in (before, after)]
        assert "error" not in kinds[1] and set(kinds[0]) <= set(kinds[1])
    assert "groups of [2, 2, 2, 1001, 1001]" in run.cells[-1].outputs[0].text
