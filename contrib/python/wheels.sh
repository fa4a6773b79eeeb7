#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the wheels that others install: for Python 3.10, 3.11 and, in one, 3.12 and later, of those that are here, each for
# systems with glibc 2.28 or later (manylinux_2_28), and checks them.
# Usage: contrib/python/wheels.sh [--cuda ON|OFF] [FOLDER]   (default: with CUDA where nvcc is, into out/wheels)
# Environments for building stay in ~/.cache/gnnd/python. GNND_PYTHONS="3.11" chooses versions, and
# CMAKE_ARGS="-DCMAKE_CUDA_ARCHITECTURES=90a" the GPUs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=/dev/null
. ./pythons.sh

cuda=AUTO platform=manylinux_2_28_x86_64
if [ "${1:-}" = --cuda ]; then
    cuda=${2:?--cuda needs ON or OFF}
    shift 2
fi
out=${1:-../../out/wheels}
mkdir -p "$out"
out=$(realpath "$out")
cache="${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1
export CXX=${CXX:-c++}  # by the name that CMake takes elsewhere: ccache finds objects of a compiler by its name
for tool in patchelf readelf; do
    if ! command -v "$tool" >/dev/null; then
        echo "wheels.sh: no $tool; contrib/setup.sh python installs it" >&2
        exit 1
    fi
done

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# OpenMP's runtime travels with the wheel. The static one of a distribution cannot be part of a shared object (its threads'
# variables lie where only a program's can), so it is the shared one, which asks for this machine's glibc until it is told
# not to.
mkdir "$work/lib"
cp "$(g++ -print-file-name=libgomp.so.1)" "$work/lib/libgomp.so.1"
python3 manylinux/lower_versions.py "$work/lib/libgomp.so.1"

check() { # wheel, environment
    local wheel=$1 bin=$2/bin folder glibc
    "$bin/auditwheel" show "$wheel" | tee "$work/shown"
    # It names the oldest that would do.
    glibc=$(sed -n 's/.*"manylinux_2_\([0-9]*\)_.*/\1/p' "$work/shown" | head -1)
    if [ "${glibc:-99}" -gt 28 ]; then
        echo "wheels.sh: $wheel is not $platform" >&2
        return 1
    fi
    folder="$work/$(basename "$wheel" .whl)"
    "$bin/python" -m zipfile -e "$wheel" "$folder"
    find "$folder" -name '*.so*' -exec readelf -d {} + | grep -F '(NEEDED)' | sed 's/.*\[\(.*\)\]/\1/' | sort -u >"$work/needed"
    echo "== needs: $(tr '\n' ' ' <"$work/needed")"
    if grep -qvE '^(lib(c|m|dl|rt|pthread|gcc_s)\.so\.[0-9]+|ld-linux-x86-64\.so\.2|libgomp-[0-9a-f]+\.so\.[0-9.]+)$' "$work/needed"; then
        echo "wheels.sh: $wheel needs more than the system has everywhere" >&2
        return 1
    fi
    echo "== $(stat -c '%s bytes' "$wheel"): $wheel"
}

built=0
for version in ${GNND_PYTHONS:-3.10 3.11 3.12}; do
    if ! python=$(find_python "$version"); then
        echo "== Python $version: none here that has venv and its headers; no wheel"
        continue
    fi
    environment="$cache/build-$version"
    building_environment "$python" "$environment"
    CMAKE_ARGS="${CMAKE_ARGS:-} -DGNND_CUDA=$cuda -DGNND_PYTHON_MANYLINUX=ON -DGNND_WERROR=${GNND_WERROR:-OFF}" \
        PATH="$environment/bin:$PATH" pip -q wheel . --no-deps --no-build-isolation -w "$work/$version"
    PATH="$environment/bin:$PATH" LD_LIBRARY_PATH="$work/lib" auditwheel repair --plat "$platform" --only-plat \
        -w "$work/repaired" "$work/$version"/gnnd-*.whl
    for wheel in "$work/repaired"/gnnd-*.whl; do
        mv "$wheel" "$out/"
        check "$out/$(basename "$wheel")" "$environment"
    done
    built=$((built + 1))
done
if [ "$built" -eq 0 ]; then
    echo "wheels.sh: no interpreter at all; contrib/setup.sh python installs Debian's" >&2
    exit 1
fi
