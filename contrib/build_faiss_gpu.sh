#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the FAISS that Debian's source package holds with its GPU code, for the CUDA toolkit that is installed, and
# installs it to PREFIX (default: ~/.cache/gnnd/faiss-gpu, where this project's CMake files look for it). Does nothing
# where that is done already. About 5 minutes on 2 cores. The system's apt configuration stays as it is. Left out are
# binary indexes and the encoder of local search quantizers (build_faiss_gpu.cmake); the CPU half is Debian's own.
# Usage: contrib/build_faiss_gpu.sh [PREFIX]
# CUDA_ARCHITECTURES in the environment: as CMake takes them; default: the GPU of this machine, else 90-real.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/faiss-gpu}
case $prefix in
    -*)
        echo "build_faiss_gpu.sh: $prefix is no folder. Usage: contrib/build_faiss_gpu.sh [PREFIX]" >&2
        exit 2
        ;;
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! [ -x "$nvcc" ]; then
    echo "build_faiss_gpu.sh: there is no CUDA toolkit (nvcc)" >&2
    exit 1
fi
architectures=${CUDA_ARCHITECTURES-}
if [ -z "$architectures" ]; then
    architectures=90-real
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then architectures=native; fi
fi

# What an earlier run wrote at its very end.
if [ "$architectures" = native ]; then
    which="native ($(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u | tr '\n' ' '))"
fi
built="$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/CUDA \1/p'), ${which:-$architectures}"
if [ "$(cat "$prefix/built_for" 2>/dev/null)" = "$built" ]; then
    echo "build_faiss_gpu.sh: $prefix is there ($built)"
    exit 0
fi

contrib/setup.sh build faiss-gpu
sources=()
for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -s "$file" ]; then sources+=("$file"); fi
done
if ! command -v dpkg-source >/dev/null || [ ${#sources[@]} -eq 0 ]; then
    echo "build_faiss_gpu.sh: not a Debian. Elsewhere build FAISS with -DFAISS_ENABLE_GPU=ON and name it to this" >&2
    echo "  project's CMake in CMAKE_PREFIX_PATH" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "== Fetching the source package"
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/source"
for file in "${sources[@]}"; do
    sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$work/sources/debian.${file##*.}"
done
own_apt=(-q -o Dir::Etc::sourcelist=- -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
apt-get "${own_apt[@]}" update
(cd "$work/source" && apt-get "${own_apt[@]}" source --download-only faiss && dpkg-source -x ./*.dsc faiss)

# The CPU half need not be compiled where the package that holds it is of the same source.
cpu_half=
source_version=$(sed -n 's/^Version: //p' "$work"/source/*.dsc | head -n 1)
if [ "$(dpkg-query -W -f '${source:Version}' libfaiss-dev)" = "$source_version" ]; then
    cpu_half=$(dpkg-query -L libfaiss-dev | grep '/libfaiss\.a$' || true)
fi
parts=$PWD/contrib/build_faiss_gpu.cmake
sed -i "s|^add_library(faiss \\\$.*|set(GNND_PART cpu)\ninclude($parts)\n&|" "$work/source/faiss/faiss/CMakeLists.txt"
sed -i "s|^target_sources(faiss PRIVATE.*|set(GNND_PART gpu)\ninclude($parts)\n&|" \
    "$work/source/faiss/faiss/gpu/CMakeLists.txt"
for half in faiss faiss/gpu; do
    if ! grep -q "^include($parts)" "$work/source/faiss/$half/CMakeLists.txt"; then
        echo "build_faiss_gpu.sh: $half/CMakeLists.txt of FAISS $source_version is not as expected" >&2
        exit 1
    fi
done

echo "== Building for $built"
# FAISS 1.7.3 predates compilers whose headers no longer bring <cstdint> along.
cmake -S "$work/source/faiss" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON \
    -DFAISS_ENABLE_GPU=ON -DFAISS_ENABLE_PYTHON=OFF -DBUILD_TESTING=OFF -DBUILD_SHARED_LIBS=ON -DBLA_VENDOR=OpenBLAS \
    -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DCMAKE_CUDA_STANDARD=17 \
    -DCMAKE_CXX_STANDARD=17 -DCMAKE_CXX_FLAGS="-include cstdint" -DGNND_FAISS_CPU="$cpu_half"
cmake --build "$work/build" --target faiss
mkdir -p "$prefix"
rm -f "$prefix/built_for"
cmake --install "$work/build" --strip
echo "$built" >"$prefix/built_for"
echo "build_faiss_gpu.sh: FAISS is in $prefix"
