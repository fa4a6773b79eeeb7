#!/usr/bin/env bash
# Installs what is missing, builds and runs all tests.
# GNND_WERROR=ON in the environment makes warnings errors.
# Usage: contrib/test.sh [--preset cpu|cuda|sanitize|tsan] [ctest options]
# cuda needs the CUDA toolkit; without a GPU the tests that need one are skipped and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=cpu
if [ "${1-}" = --preset ]; then
    preset=${2:?--preset needs a name}
    shift 2
fi
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
contrib/setup.sh "${sets[@]}"
cmake --preset "$preset" -DGNND_WERROR="${GNND_WERROR:-OFF}"
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)" "$@" </dev/null
