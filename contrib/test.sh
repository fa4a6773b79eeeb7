#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds and runs all tests.
# Usage: contrib/test.sh [--preset cpu|cuda|sanitize|tsan] [--no-setup] [ctest options]
#   --preset    cpu by default; cuda needs the CUDA toolkit, and without a GPU the tests that need one are skipped and
#               say so
#   --no-setup  installs nothing: all that is needed is there, in the system or where CMAKE_PREFIX_PATH says
# GNND_WERROR=ON in the environment makes warnings errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=cpu setup=1
while [ $# -gt 0 ]; do
    case $1 in
        --preset) preset=${2:?--preset needs a name} && shift ;;
        --no-setup) setup= ;;
        *) break ;;
    esac
    shift
done
sets=(build test)
case $preset in
    cpu | cuda | sanitize) ;;
    tsan) sets+=(tsan) ;;
    *)
        echo "test.sh: unknown preset: $preset (cpu, cuda, sanitize, tsan)" >&2
        exit 2
        ;;
esac

echo "== Tests, preset $preset"
if [ -n "$setup" ]; then contrib/setup.sh "${sets[@]}"; fi
cmake --preset "$preset" -DGNND_WERROR="${GNND_WERROR:-OFF}"
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)" "$@" </dev/null
