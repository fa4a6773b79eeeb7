#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the style: clang-format and clang-tidy for C++, shellcheck for scripts, ruff for Python, licenses, and the length of
# commits' subjects. Installs what is missing.
# Usage: contrib/lint.sh [--fix]   (--fix rewrites the files as clang-format and ruff want them and stops there)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

contrib/setup.sh build test lint
repository() { git -c safe.directory="$PWD" "$@"; }
tracked() { repository ls-files -z -- "$@"; }
cpp=('*.h' '*.cpp' '*.cu' '*.cuh')
ruff_version=0.17.6

# Debian has no ruff: it comes from PyPI, once.
ruff=${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/ruff/bin/ruff
if [ "$("$ruff" --version 2>/dev/null)" != "ruff $ruff_version" ]; then
    python3 -m venv "${ruff%/bin/ruff}"
    "${ruff%/ruff}/pip" install --quiet "ruff==$ruff_version"
fi

if [ "${1-}" = --fix ]; then
    tracked "${cpp[@]}" | xargs -0 clang-format -i
    "$ruff" format --quiet
    exit 0
fi

echo "== clang-format"
tracked "${cpp[@]}" | xargs -0 clang-format --dry-run -Werror

echo "== shellcheck"
tracked '*.sh' .ci/run | xargs -0 shellcheck

none() { # what it is about; files on standard input, of which there must be none
    local files
    files=$(cat)
    [ -z "$files" ] || { echo "$1: $files" >&2 && exit 1; }
}

echo "== ruff"
"$ruff" check --quiet
"$ruff" format --check --quiet

echo "== licenses"
tracked "${cpp[@]}" '*.in' '*.sh' .ci/run '*.py' '*.cmake' '*CMakeLists.txt' contrib/docs/Doxyfile '*.sed' |
    { xargs -0 grep -L 'SPDX-License-Identifier: MIT' || true; } | none 'without "SPDX-License-Identifier: MIT"'

# By date, so that it works in a clone of any depth: the history before the rule has longer ones.
echo "== commit subjects"
repository log --since=2026-11-22T21:50:00Z --format=%s |
    awk 'length > 72 { print "longer than 72 characters: " $0; long = 1 } END { exit long }'

# Tests and benchmarks are left out: their frameworks' macros cost most of the time and give most of the noise. What needs
# CUDA is, since a machine without the toolkit shall be able to check the rest.
echo "== clang-tidy"
cmake --preset cpu -B build/lint -DCMAKE_UNITY_BUILD=OFF >/dev/null
{ grep -RL 'arXiv 2103.15386' build/lint/include || true; } | none 'public, but does not cite the paper'
tracked 'gnnd/*.cpp' 'faiss_ext/*.cpp' 'contrib/cli/*.cpp' ':!gnnd/cuda' \
    ':!faiss_ext/faiss_resources.cpp' ':!faiss_ext/detail/gpu_*' | xargs -0 contrib/tidy.py build/lint
