#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compare_cpu.sh BASE [ROWS [REPEAT]]: GNND against the peers of peer_list.py that run on a CPU and FAISS's NNDescent, in
# one run on one machine. Needs build/cpu (contrib/test.sh builds it). The others go into a virtual environment in the
# cache folder; one that cannot be had is left out with a word.
set -euo pipefail
base=${1:?vector file} rows=${2:-100000} repeat=${3:-3} k=32
here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/peers
bench=$here/../build/cpu/benchs/build_bench
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
peers=() absent=''
while IFS=$'\t' read -r name script modules setting; do
    [[ $absent != *"|$name|"* ]] || continue
    if ! "$venv/bin/python" -c "import ${modules// /, }" 2>/dev/null; then
        echo "Installing $modules into $venv" >&2
        # shellcheck disable=SC2086  # one word a module
        "$venv/bin/pip" install --quiet $modules || {
            echo "$name cannot be installed: left out" >&2
            absent+="|$name|"
            continue
        }
    fi
    peers+=("$script $setting")
done < <(python3 "$here/peer_list.py" cpu)
for ((round = 0; round < repeat; ++round)); do
    "$bench" "$base" --rows "$rows" -k $k \
        method=gnnd method=gnnd,update=selective method=gnnd,update=all \
        method=gnnd,init=random method=gnnd,init=random,update=selective
    for peer in "${peers[@]}"; do
        read -ra words <<<"$peer"
        "$venv/bin/python" "$here/${words[0]}" "$base" --rows "$rows" -k $k "${words[@]:1}"
    done
done
"$bench" "$base" --rows "$rows" -k $k method=nndescent method=nndescent,iterations=6
