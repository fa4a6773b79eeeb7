#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The proof that the library is extended in one place: applies the patches of this folder, each of which may touch two
# files at most, to a copy of the tree, builds it and uses what they add, in a program and through the tool. Then it makes
# mistakes as one may in extending the library, and expects the compiler to tell.
# Usage: tests/extending/run.sh   (in build/extending, after contrib/test.sh, whose tool stands for an older one)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/extending
tree=$build/tree
tool=$build/cpu/gnnd/bin/gnnd
work=$build/work
older=$root/build/cpu/bin/gnnd
most=2

fail() {
    echo "extending: $*" >&2
    exit 1
}
quietly() { # its output, where it fails
    "$@" >"$build/log" 2>&1 || {
        cat "$build/log" >&2
        fail "failed: $*"
    }
}
must_fail() { # a text that must be told, and the command
    local text=$1
    shift
    if "$@" >"$build/log" 2>&1; then fail "succeeded: $*"; fi
    grep -qF -- "$text" "$build/log" || {
        cat "$build/log" >&2
        fail "does not say '$text': $*"
    }
}
configure() { # folder, options
    quietly cmake -S "$here" -B "$build/$1" -G Ninja -DTREE="$tree" -DCMAKE_BUILD_TYPE=Release -DGNND_FAISS_GPU=OFF \
        -DGNND_WERROR=ON "${@:2}"
}
compiles() { quietly cmake --build "$build/$1" --target "${@:2}"; }

rm -rf "$build" && mkdir -p "$tree" "$work"
export CCACHE_BASEDIR=$root GIT_CEILING_DIRECTORIES=$build  # the copy is in no repository
git -c safe.directory="$root" -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$tree" -xf -

echo "== What each touches"
for patch in "$here"/*.patch; do
    name=$(basename "$patch" .patch) files=$(grep -c '^+++ ' "$patch")
    git -C "$tree" apply --check "$patch" || fail "$name: does not apply"
    echo "$name: $files"
    [ "$files" -le $most ] || fail "$name: allowed are $most"
done
for patch in "$here"/*.patch; do git -C "$tree" apply "$patch"; done

echo "== Used on the CPU"
configure cpu -DGNND_CUDA=OFF -DGNND_CLI=ON
compiles cpu check gnnd_cli
"$build/cpu/check"

"$tool" convert "$root/tests/data/photosift20k.u8bin" "$work/base.u8bin" --count 3000
for option in canberra following --patience; do
    "$tool" build --help | grep -- "$option" >/dev/null || fail "the tool's help does not tell about $option"
done
"$tool" build "$work/base.u8bin" -k 16 --metric canberra --init following --patience 5 --device cpu -q --json \
    -o "$work/g.gnnd" >"$work/report.json"
for entry in '"metric": "canberra"' '"init": "following"' '"patience": 5'; do
    grep -qF "$entry" "$work/report.json" || fail "the report lacks $entry"
done
recall=$("$tool" eval "$work/g.gnnd" "$work/base.u8bin" --queries 500 --device cpu | sed -n 's/^Recall@10 //p')
echo "the tool's graph under canberra: Recall@10 $recall"
awk "BEGIN { exit !($recall > 0.95) }" || fail "it is too low"
must_fail "patience" "$tool" build "$work/base.u8bin" --patience 10 -o "$work/g"
must_fail "canberra" "$tool" build "$work/base.u8bin" --metric canbera -o "$work/g"

echo "== A folder of shards that was written before the field was there"
shards=(build "$work/base.u8bin" -k 8 --shards 3 --work "$work/shards" --device cpu -q)
"$older" "${shards[@]}" >/dev/null
"$tool" "${shards[@]}" --resume >/dev/null
must_fail "patience is 3, asked for is 5" "$tool" "${shards[@]}" --resume --patience 5

if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    echo "== Compiled for CUDA"
    objects=gnnd/gnnd/CMakeFiles/gnnd.dir/cuda
    configure cuda -DGNND_CUDA=ON -DGNND_FAISS=OFF -DGNND_CLI=OFF -DGNND_CUDA_VARIANTS=OFF \
        -DCMAKE_CUDA_ARCHITECTURES=90a-real
    compiles cuda $objects/engine_Canberra.cu.o $objects/engine/engines.cu.o
    symbol=$(nm -C "$build/cuda/$objects/engine/engines.cu.o" | sed -n 's/^ *U \(.*Canberra.*\)/\1/p')
    [ -n "$symbol" ] || fail "nothing asks for the engine of a metric: who leaves it out would not be told"
    nm -C "$build/cuda/$objects/engine_Canberra.cu.o" | grep -F "$symbol" >/dev/null || fail "there is no $symbol"
    echo "a metric that is not in the list of engines: does not link"
fi

echo "== Mistakes are told"
params=gnnd/gnnd/CMakeFiles/gnnd.dir/params.cpp.o
sed -i '/"patience"/d' "$tree/gnnd/detail/params_table.h"
must_fail "every field of BuildParams has one line" cmake --build "$build/cpu" --target $params
echo "a field that is not in the table: does not compile"
sed -i '/case Locks::list:/,+1d' "$tree/gnnd/params.cpp"
must_fail "not handled in switch" cmake --build "$build/cpu" --target $params
echo "an enumerator without a name: does not compile"
