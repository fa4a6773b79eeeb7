#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compare_cpu.sh BASE [ROWS [REPEAT]]: GNND against pynndescent and FAISS's NNDescent on the CPU, in one run on one
# machine. Needs build/cpu (contrib/test.sh builds it). pynndescent goes into a virtual environment in the cache folder.
set -euo pipefail
base=${1:?vector file} rows=${2:-100000} repeat=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/pynndescent
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pynndescent' 2>/dev/null; then
    echo "Installing pynndescent into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet pynndescent
fi
for ((round = 0; round < repeat; ++round)); do
    "$here/../build/cpu/benchs/build_bench" "$base" --rows "$rows" -k 32 \
        method=gnnd method=gnnd,update=selective method=gnnd,update=all \
        method=gnnd,init=random method=gnnd,init=random,update=selective
    "$venv/bin/python" "$here/peer_pynndescent.py" "$base" --rows "$rows" -k 30
done
"$here/../build/cpu/benchs/build_bench" "$base" --rows "$rows" -k 32 method=nndescent method=nndescent,iterations=6
