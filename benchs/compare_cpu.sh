#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compare_cpu.sh BASE [ROWS [REPEAT]]: GNND against pynndescent, pipnn and FAISS's NNDescent on the CPU, in one run on one
# machine. Needs build/cpu (contrib/test.sh builds it). The others go into a virtual environment in the cache folder; one
# that cannot be had is left out with a word.
set -euo pipefail
base=${1:?vector file} rows=${2:-100000} repeat=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/peers
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
peers=()
for peer in pynndescent pipnn; do
    if ! "$venv/bin/python" -c "import $peer" 2>/dev/null; then
        echo "Installing $peer into $venv" >&2
        "$venv/bin/pip" install --quiet "$peer" || { echo "$peer cannot be installed: left out" >&2; continue; }
    fi
    peers+=("$peer")
done
# pipnn trades time for recall by its partitions and its beam: the settings around a recall of 0.995.
time_peer() {
    case $1 in
        pynndescent) "$venv/bin/python" "$here/peer_pynndescent.py" "$base" --rows "$rows" -k 30 ;;
        pipnn)
            for setting in "1 48" "1 64" "2 64" "1 128" "2 128"; do
                "$venv/bin/python" "$here/peer_pipnn.py" "$base" --rows "$rows" -k 32 \
                    --runs "${setting% *}" --beam "${setting#* }"
            done
            ;;
    esac
}
for ((round = 0; round < repeat; ++round)); do
    "$here/../build/cpu/benchs/build_bench" "$base" --rows "$rows" -k 32 \
        method=gnnd method=gnnd,update=selective method=gnnd,update=all \
        method=gnnd,init=random method=gnnd,init=random,update=selective
    for peer in "${peers[@]}"; do time_peer "$peer"; done
done
"$here/../build/cpu/benchs/build_bench" "$base" --rows "$rows" -k 32 method=nndescent method=nndescent,iterations=6
