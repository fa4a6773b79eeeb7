#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From nothing to a k-NN graph: installs what is missing, builds the tool, builds the graph of the sample that ships in
# tests/data, and compares it with FAISS's exact search. Usage: contrib/quickstart.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/quickstart
base=tests/data/photosift20k.u8bin
graph=out/photosift20k.gnnd

say() { printf '\n== %s\n' "$*"; }

say "Installing what is missing"
contrib/setup.sh build

say "Building the tool in $build"
cmake --preset cpu -B "$build" -DGNND_TESTS=OFF -DGNND_BENCHS=OFF
cmake --build "$build"

say "Building the k-NN graph of $base"
mkdir -p out
"$build/bin/gnnd" build "$base" -k 32 -o "$graph" --stats "${graph%.gnnd}.json"

say "Comparing it with FAISS's exact search"
"$build/bin/gnnd" eval "$graph" "$base"

say "Done"
echo "graph      $PWD/$graph"
echo "statistics $PWD/${graph%.gnnd}.json"
echo "tool       $PWD/$build/bin/gnnd (try --help)"
