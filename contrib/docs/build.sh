#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the API's pages in build/docs/html, from the public headers and the pages in this folder; any warning is an error.
# Installs Doxygen where it is missing. Usage: contrib/docs/build.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

contrib/setup.sh build docs
echo "== Doxygen"
# Configuring is enough: it lays out the public headers as they are installed.
cmake --preset cpu -B build/docs -DGNND_CLI=OFF -DGNND_TESTS=OFF -DGNND_BENCHS=OFF >/dev/null
GNND_HEADERS=$PWD/build/docs/include
GNND_VERSION=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/docs/CMakeCache.txt)
GNND_OUT=build/docs
export GNND_HEADERS GNND_VERSION GNND_OUT
doxygen contrib/docs/Doxyfile

# The files, folders and programs that the pages name are there.
# shellcheck disable=SC2016  # backticks, not commands
grep -oE '`(gnnd|faiss_ext|contrib|tests|benchs)/[^` ]*`' README.md CONTRIBUTING.md contrib/docs/*.md | tr -d '`' | sort -u |
    while IFS=: read -r page file; do
        [ -e "$file" ] || [ -e "$file.cpp" ] || { echo "$page: there is no $file" >&2; exit 1; }
    done
echo "$PWD/build/docs/html/index.html"
