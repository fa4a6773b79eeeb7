#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where comparing all pairs becomes dearer than GNND: over n and d, builds that are to have a Recall@10 of 0.95, 0.99 and
# 0.999, which choose for themselves, beside exact ones, on data of intrinsic dimension 12 (manifold) and of d (gauss).
# Prints gpu_bench's JSON lines; `stop` says what a build chose (`exact`: all pairs).
# Usage: benchs/crossing.sh GPU_BENCH [-k K] [--most N]
#   -k K      neighbours, 10 by default
#   --most N  sets of up to so many rows, 1,000,000 by default
set -euo pipefail

bench=${1:?crossing.sh: needs the path of gpu_bench} && shift
k=10 most=1000000
while [ $# -gt 0 ]; do
    case $1 in
        -k) k=${2:?-k needs a number} && shift ;;
        --most) most=${2:?--most needs a number} && shift ;;
        *) echo "crossing.sh: unknown option: $1" >&2 && exit 2 ;;
    esac
    shift
done
for d in 50 128 384 768; do
    for n in 10000 20000 50000 100000 200000 500000 1000000; do
        [ "$n" -le "$most" ] || continue
        for data in "manifold:$n:$d:12" "hard:gauss:$n:$d"; do
            "$bench" "$data" -k "$k" --repeat 3 --queries 200 recall=0.95 recall=0.99 recall=0.999 exact=1
        done
    done
done
