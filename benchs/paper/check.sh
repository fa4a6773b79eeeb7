#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs all experiments of benchs/paper on small data, without a GPU, and looks at results and figures: check.py says at
# what. Then once more, when nothing may be measured again. Python's packages go into a virtual environment in the cache
# folder; the tools are taken from build/cpu, and built where they are not there.
# Usage: benchs/paper/check.sh [OUT]    OUT: a folder for results and figures, out/paper-check by default; emptied first
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
out=${1:-$repository/out/paper-check}
venv=${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/paper
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}  # threads that spin take the cores from each other
tools=(gnnd_cli build_bench index_bench sharded_plan make_vectors)

if ! "$venv/bin/python" -c 'import h5py, matplotlib, numpy' 2>/dev/null; then
    echo "Installing numpy, h5py and matplotlib into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet -r "$here/requirements.txt"
fi
if [ ! -f "$repository/build/cpu/CMakeCache.txt" ]; then (cd "$repository" && cmake --preset cpu >/dev/null); fi
cmake --build "$repository/build/cpu" --target "${tools[@]}" >/dev/null
case $out in
    / | "$HOME" | "$repository") echo "check.sh: $out is not emptied" >&2 && exit 2 ;;
esac
rm -rf "$out"
mkdir -p "$out"

run() { # what is said goes to a file, whose end is shown if it fails
    "$venv/bin/python" "$here/run.py" all --quick --device cpu --graphs --build "$repository/build/cpu" --out "$out" \
        --cache "$out/data" --csv "$out/csv" >"$out/$1" 2>&1 || { tail -40 "$out/$1" >&2 && return 1; }
}
"$venv/bin/python" -m unittest discover -q -s "$repository/tests/paper" -p '*_test.py'
start=$SECONDS
run first.log
echo "all experiments: $((SECONDS - start)) s"
cp "$out"/*.jsonl "$out/data"
run second.log
"$venv/bin/python" "$here/check.py" "$out" --before "$out/data"
