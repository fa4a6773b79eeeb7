# SPDX-License-Identifier: MIT
"""The base class that tests of benchs/paper share."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import numpy as np


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def write(self, name: str, *parts: np.ndarray) -> Path:
        """A file of these arrays' bytes."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(part.tobytes() for part in parts))
        return path
