#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Configures, builds and runs the tests on a machine with a GPU, and prints ctest's summary. Needs what contrib/setup.sh
# names, but installs nothing, and the CUDA toolkit. Without a GPU the tests that need one are skipped and say why.
# Usage: tests/run_gpu.sh [--prefix DIR]... [--only SET[,SET]...] [--sanitize] [ctest options]
#   --prefix DIR  where dependencies are (include, lib and share below it), as in CMAKE_PREFIX_PATH
#   --only SETS   of cpu (the library on the CPU), cuda, faiss (the plug-in, on both) and tool. Without, all of them, but
#                 cpu and cuda alone where no FAISS with GPU support is found in a prefix or in the cache of
#                 contrib/build_faiss_gpu.sh
#   --sanitize    instead runs small builds of everything under compute-sanitizer's four tools
# In the environment: CUDA_ARCHITECTURES (this machine's by default), GNND_CMAKE (further options for CMake, e.g.
# -DxxHash_INCLUDE_DIR=...), GNND_JOBS (tests side by side, as many as cores by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sanitize='' only=''
while [ $# -gt 0 ]; do
    case $1 in
        --sanitize) sanitize=1 only=cuda ;;
        --only) only=${2:?--only needs names} && shift ;;
        --prefix) export CMAKE_PREFIX_PATH=${2:?--prefix needs a folder}${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH} && shift ;;
        *) break ;;
    esac
    shift
done
if [ -z "$only" ]; then
    only=cpu,cuda
    IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH-}"
    for prefix in "${prefixes[@]}" "${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/faiss-gpu"; do
        if [ -e "$prefix/include/faiss/gpu/StandardGpuResources.h" ]; then only=cpu,cuda,faiss,tool; fi
    done
    if [ $only = cpu,cuda ]; then echo "run_gpu.sh: no FAISS with GPU support: the plug-in and the tool are left out"; fi
fi
targets=() tests='' faiss=OFF cli=OFF
add() { # targets, and what the names of their tests begin with
    tests+="${tests:+|}$1"
    shift
    targets+=("$@")
}
IFS=, read -ra sets <<<"$only"
for set in "${sets[@]}"; do
    case $set in
        cpu)
            add '(cpu|core|io|operations|shard)_tests[.]|example_core|readme' \
                cpu_tests core_tests io_tests operations_tests shard_tests core_graph
            ;;
        cuda) add 'cuda_tests[.]' cuda_tests ;;
        faiss)
            faiss=ON && add 'faiss_(ext|gpu)_tests[.]|gnnd_index(_gpu)?_tests[.]|example_.*nsg' \
                faiss_ext_tests faiss_gpu_tests gnnd_index_tests gnnd_index_gpu_tests nsg gpu_nsg
            ;;
        tool) faiss=ON cli=ON && add 'cli_tests[.]' cli_tests gnnd_cli ;;
        *)
            echo "run_gpu.sh: unknown set of tests: $set (cpu, cuda, faiss, tool)" >&2
            exit 2
            ;;
    esac
done

read -ra options <<<"${GNND_CMAKE-}"
cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DGNND_CUDA=ON -DGNND_FAISS=$faiss -DGNND_CLI=$cli \
    -DGNND_FAISS_GPU="$([[ ,$only, = *,faiss,* ]] && echo ON || echo AUTO)" -DGNND_BENCHS=OFF \
    -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES:-native}" "${options[@]}"
cmake --build build/gpu --target "${targets[@]}"
if [ -z "$sanitize" ]; then
    exec ctest --test-dir build/gpu -R "^($tests)" -j "${GNND_JOBS:-$(nproc)}" --output-on-failure "$@"
fi
status=0
small='CudaKernel*:*CudaVariantTest.SmallBuild*:Cuda.DeviceMemory*:CudaLinksTest.*TinySets:*ForAnySamplesAndInit/l2_u8:*ForAnySamplesAndInit/ip_f32:*ForAnySamplesAndInit/chi2_f16'
for tool in memcheck initcheck synccheck racecheck; do
    echo "== compute-sanitizer --tool $tool"
    flags=()
    # racecheck takes a hundred times as long
    [ $tool != racecheck ] || small='*CudaVariantTest.SmallBuild*:*TinySets'
    # Some tests provoke errors of CUDA calls on purpose.
    [ $tool != memcheck ] || flags+=(--report-api-errors no)
    compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 1 build/gpu/tests/cuda_tests --gtest_filter="$small" \
        --gtest_brief=1 || status=1
done
exit $status
