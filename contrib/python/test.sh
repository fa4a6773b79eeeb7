#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the CPU wheel for Python 3.11 and 3.12, where there are such interpreters (in PATH or pyenv's), installs each into
# a fresh environment and runs tests/ there against what was installed.
# Usage: contrib/python/test.sh [options of pytest]
# Environments for building stay in ~/.cache/gnnd/python. GNND_PYTHONS="3.10 3.13" chooses other versions; GNND_WERROR=ON makes
# warnings errors; CMAKE_CXX_COMPILER_LAUNCHER=ccache is honoured, and then CCACHE_BASEDIR should be the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=/dev/null
. ./pythons.sh
cache="${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

test_with() { # version, interpreter; then pytest's options
    local version=$1 python=$2 start=$SECONDS
    shift 2
    building_environment "$python" "$cache/build-$version"
    CMAKE_ARGS="-DGNND_CUDA=OFF -DGNND_PYTHON_MANYLINUX=OFF -DGNND_WERROR=${GNND_WERROR:-OFF}" PATH="$cache/build-$version/bin:$PATH" \
        pip -q wheel . --no-deps --no-build-isolation -w "$work/$version"
    local built=$SECONDS
    "$python" -m venv "$work/env-$version"
    local wheel=("$work/$version"/gnnd-*.whl)
    "$work/env-$version/bin/pip" -q install "${wheel[0]}[test]"
    local installed=$SECONDS
    # From elsewhere, so that the package's sources are no candidate for `import gnnd`.
    (
        cd "$work"
        "env-$version/bin/python" -c "
import gnnd, sys
assert gnnd.__file__.startswith('$work/env-$version'), gnnd.__file__
print(f'== Python {sys.version.split()[0]}: gnnd {gnnd.__version__} from', gnnd.__file__)"
        "env-$version/bin/pytest" -q -p no:cacheprovider -c "$OLDPWD/pyproject.toml" --rootdir "$OLDPWD" "$OLDPWD/tests" "$@"
    )
    echo "== Python $version: $((built - start)) s to build, $((installed - built)) s to install, $((SECONDS - installed)) s to test;" \
        "$(stat -c %s "${wheel[0]}") bytes: $(basename "${wheel[0]}")"
}

tested=0
for version in ${GNND_PYTHONS:-3.11 3.12}; do
    if python=$(find_python "$version"); then
        test_with "$version" "$python" "$@"
        tested=$((tested + 1))
    else
        echo "== Python $version: none here that has venv and its headers; not tested"
    fi
done
if [ "$tested" -eq 0 ]; then
    echo "test.sh: no interpreter at all; contrib/setup.sh python installs Debian's" >&2
    exit 1
fi
