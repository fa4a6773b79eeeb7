# SPDX-License-Identifier: MIT
"""The examples of contrib/docs/python.md run as they stand, one after the other."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
TOOLS = {"scikit-learn": "sklearn", "UMAP": "umap", "HDBSCAN": "hdbscan", "scanpy": "scanpy", "FAISS": "faiss"}


def code_of(section: str) -> str:
    """The Python code below a heading."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", ["Graphs", *TOOLS])
def test_examples(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip("the tests stand alone here, without the page")
    assert code_of(section)
    needed = [section] if section in ("Graphs", "FAISS", "scikit-learn") else ["scikit-learn", section]
    for one in needed:
        if one in TOOLS and importlib.util.find_spec(TOOLS[one]) is None:
            pytest.skip(f"{one} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for one in dict.fromkeys(["Graphs", *needed]):  # what an example needs stands above it
        exec(compile(code_of(one), f"{PAGE.name}: {one}", "exec"), names)
