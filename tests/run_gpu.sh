#!/usr/bin/env bash
# Configures, builds and runs every test that uses a GPU, and prints ctest's summary. Made for a machine with a GPU; needs
# the CUDA toolkit, CMake, a C++20 compiler, GoogleTest and xxHash's header. With a FAISS that has GPU support (named in
# CMAKE_PREFIX_PATH, or built by contrib/build_faiss_gpu.sh) those of faiss_ext are among them. Without a GPU the tests
# are skipped and say why.
# Usage: tests/run_gpu.sh [--sanitize] [ctest options]
#   --sanitize  instead runs small builds of everything under compute-sanitizer's four tools
# GNND_CMAKE in the environment: further options for CMake, e.g. -DxxHash_INCLUDE_DIR=...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sanitize=
if [ "${1-}" = --sanitize ]; then
    sanitize=1
    shift
fi
read -ra options <<<"${GNND_CMAKE-}"
faiss=OFF
IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH-}"
for prefix in "${prefixes[@]}" "${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/faiss-gpu"; do
    if [ -e "$prefix/include/faiss/gpu/StandardGpuResources.h" ]; then faiss=ON; fi
done
if [ $faiss = OFF ]; then echo "run_gpu.sh: no FAISS with GPU support: the tests of faiss_ext are left out"; fi
cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DGNND_CUDA=ON -DGNND_CLI=OFF -DGNND_BENCHS=OFF \
    -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES:-native}" -DGNND_FAISS="$faiss" \
    -DGNND_FAISS_GPU="$([ $faiss = ON ] && echo ON || echo AUTO)" "${options[@]}"
targets=(cuda_tests)
if [ "$faiss" = ON ]; then targets+=(faiss_gpu_tests gpu_nsg); fi
cmake --build build/gpu --target "${targets[@]}"
if [ -z "$sanitize" ]; then
    exec ctest --test-dir build/gpu -L gpu --output-on-failure "$@"
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
