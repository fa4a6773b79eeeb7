#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compare_gpu.sh BASE [OPTION...]: GNND and the peers that are installed, on the same vectors on one GPU in one run, from
# host memory to host memory. Prints one JSON line for each build, and in the end a table.
#   --rows N       the first N rows of BASE (u8bin, i8bin or fbin); 0, the default: all
#   -k K           neighbours (64)
#   --repeat R     rounds over all builders (3)
#   --queries Q    objects sampled for the recall (2000)
#   --device D     cuda:N (cuda:0), or cpu, where peers that need a GPU are left out
#   --only NAMES   of gnnd, faiss and the peers of peer_list.py some, with commas between them
#   --lines FILE   where the JSON lines go, too; they are added to what it holds
# Peers: pip install cuvs-cu13 flashlib pynndescent pipnn, for the Python that $PYTHON names (python3). What is not there is
# left out with a word. build_bench is that of build/cuda, on the CPU of build/cpu, or what $BUILD_BENCH names.
set -euo pipefail

usage() {
    sed -n '3,/^set /s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
refuse() {
    echo "compare_gpu.sh: $1" >&2
    exit 2
}
whole() { # NAME VALUE LEAST
    { [[ $2 =~ ^[0-9]+$ ]] && ((10#$2 >= $3)); } || refuse "$1 $2: allowed are whole numbers from $3"
}

here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
peers=$("$python" "$here/peer_list.py")
known=gnnd,faiss,$(cut -f 1 <<<"$peers" | uniq | paste -sd ,)
base='' rows=0 k=64 repeat=3 queries=2000 device=cuda:0 only=$known lines=''
while (($#)); do
    case $1 in
        -h | --help) usage ;;
        --rows | -k | --repeat | --queries | --device | --only | --lines)
            (($# > 1)) || refuse "$1 needs a value"
            case $1 in
                --rows) rows=$2 && whole "$1" "$2" 0 ;;
                -k) k=$2 && whole "$1" "$2" 1 ;;
                --repeat) repeat=$2 && whole "$1" "$2" 1 ;;
                --queries) queries=$2 && whole "$1" "$2" 1 ;;
                --device) device=$2 ;;
                --only) only=$2 ;;
                --lines) lines=$2 ;;
            esac
            shift
            ;;
        -*) refuse "no such option: $1" ;;
        *)
            [ -z "$base" ] || refuse "one argument too many: $1"
            base=$1
            ;;
    esac
    shift
done
[ -n "$base" ] || usage
[ -r "$base" ] || refuse "$base: cannot be read"
[[ $device == cpu || $device =~ ^cuda(:[0-9]+)?$ ]] || refuse "--device $device: allowed are cpu, cuda and cuda:N"
for name in ${only//,/ }; do
    [[ ",$known," == *",$name,"* ]] || refuse "--only $name: known are ${known//,/, }"
done

# Peers know one GPU, the first that they see; the tool's number is that of those as well.
gpu=0
[[ $device == cuda:* ]] && gpu=${device#cuda:}
if [ "$device" = cpu ]; then build=cpu; else build=cuda device=cuda:0; fi
bench=${BUILD_BENCH:-$here/../build/$build/benchs/build_bench}
if [ $build = cuda ]; then
    IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
    export CUDA_VISIBLE_DEVICES=${visible[gpu]:-$gpu}
fi

all=$(mktemp)
trap 'rm -f "$all"' EXIT
wanted() { [[ ",$only," == *",$1,"* ]]; }
left_out=''
# NAME COMMAND...: its lines are printed and kept. A peer that is not there is not asked again.
run() {
    local name=$1 status=0 said
    shift
    [[ $left_out == *"|$name|"* ]] && return
    said=$(mktemp)
    "$@" 2>"$said" | tee -a "$all" || status=${PIPESTATUS[0]}
    if ((status != 0)); then
        echo "compare_gpu.sh: $name left out: $(tail -n 1 "$said")" >&2
        left_out+="|$name|"
    elif [ -s "$said" ]; then
        cat "$said" >&2
    fi
    rm -f "$said"
}
on_cpu=$("$python" "$here/peer_list.py" cpu)
# Every setting of every peer; where there is no GPU those that need one are told once.
run_peers() {
    local name script setting words
    while IFS=$'\t' read -r name script _ setting <&3; do
        wanted "$name" || continue
        if [ $build = cpu ] && ! grep -q "^$name"$'\t' <<<"$on_cpu"; then
            [[ $left_out == *"|$name|"* ]] || echo "compare_gpu.sh: $name left out: it needs a GPU" >&2
            left_out+="|$name|"
            continue
        fi
        read -ra words <<<"$setting"
        run "$name${setting:+ $setting}" "$python" "$here/$script" "$base" --rows "$rows" -k "$k" \
            --queries "$queries" "${words[@]}"
    done 3<<<"$peers"
}

common=("$base" --rows "$rows" -k "$k" --queries "$queries" --device "$device")
for ((round = 0; round < repeat; ++round)); do
    if wanted gnnd; then
        run gnnd "$bench" "${common[@]}" method=gnnd method=gnnd,recall=0.999 method=gnnd,recall=0 method=exhaustive
    fi
    if wanted faiss; then
        run faiss "$bench" "${common[@]}" method=exact
        run faiss_ivfpq "$bench" "${common[@]}" method=ivfpq
    fi
    run_peers
done
[ -s "$all" ] || refuse "none of $only could be run"
if [ -n "$lines" ]; then cat "$all" >>"$lines"; fi
echo
"$python" "$here/paper/table.py" "$all"
