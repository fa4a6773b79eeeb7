#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The peers that are compared, and with which settings: every comparison takes them from here.

peer_list.py [cpu|cuda]      a line for each setting of those that run there: name, script, modules, setting, by tabs
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """Somebody else's builder of k-NN graphs in a script beside this file."""

    script: str
    modules: tuple[str, ...]  # what it imports from PyPI
    device: str  # cpu or cuda
    settings: tuple[tuple[str, str], ...]  # what a curve is called, and the script's options


PEERS = {
    "pynndescent": Peer("peer_pynndescent.py", ("pynndescent",), "cpu", (("pynndescent", ""),)),
    # It trades time for recall by its partitions and its beam.
    "pipnn": Peer(
        "peer_pipnn.py",
        ("pipnn",),
        "cpu",
        tuple(
            ("pipnn", f"--runs {runs} --beam {beam}") for runs, beam in ((1, 48), (1, 64), (2, 64), (1, 128), (2, 128))
        ),
    ),
    "cuvs": Peer(
        "peer_cuvs.py",
        ("cuvs",),
        "cuda",
        (
            *(("cuVS nn_descent", f"--iterations {count}") for count in (5, 10, 20)),
            *(
                (f"cuVS all_neighbors, {name}", f"--algorithm all_{name}")
                for name in ("nn_descent", "brute_force", "ivf_pq")
            ),
        ),
    ),
    "flashlib": Peer(
        "peer_flashlib.py",
        ("flashlib", "torch"),
        "cuda",
        tuple((f"FlashLib, {name}", f"--type {name}") for name in ("float16", "bfloat16")),
    ),
}


def main() -> None:
    """Those that need a GPU are left out of cpu; those that need none run beside one, too."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    if device not in ("cpu", "cuda") or len(sys.argv) > 2:
        sys.exit("usage: peer_list.py [cpu|cuda]")
    for name, peer in PEERS.items():
        if device in ("cuda", peer.device):
            for _, setting in peer.settings:
                print(name, peer.script, " ".join(peer.modules), setting, sep="\t")


if __name__ == "__main__":
    main()
