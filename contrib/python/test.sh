#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the wheel that others install, as wheels.sh has repaired and checked it, for Python 3.11 and 3.12, where there are
# such interpreters (in PATH or pyenv's), each into a fresh environment, and runs tests/ there against what was installed.
# Usage: contrib/python/test.sh [--wheels FOLDER] [--tools] [options of pytest]
# --wheels: takes what it finds there; what it does not find it builds, with the CPU backend. --tools: for the last of the
# interpreters umap-learn, hdbscan, scanpy and Jupyter are installed, too, and each test of them must run. All tests that are
# left out are named, and why. Environments for building stay in ~/.cache/gnnd/python. GNND_PYTHONS="3.10 3.13" chooses other
# versions; GNND_WERROR=ON makes warnings errors; CMAKE_CXX_COMPILER_LAUNCHER=ccache is honoured, and then CCACHE_BASEDIR should
# be the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=/dev/null
. ./pythons.sh
export PIP_DISABLE_PIP_VERSION_CHECK=1

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
wheels="$work/wheels" tools=
while true; do
    case "${1:-}" in
        --wheels) wheels=$(realpath "${2:?--wheels needs a folder}") && shift 2 ;;
        --tools) tools=1 && shift ;;
        *) break ;;
    esac
done

mkdir -p "$wheels"

wheel_for() { # version; prints the path of its wheel, which 3.12 and later have in common
    local tag=${1/./}
    if [ "$tag" -gt 312 ]; then tag=312; fi
    find "$wheels" -name "gnnd-*-cp$tag-*manylinux*.whl" 2>/dev/null | sort -V | tail -1
}

test_with() { # version, interpreter, extras to install; then pytest's options
    local version=$1 python=$2 extras=$3 start=$SECONDS wheel
    shift 3
    wheel=$(wheel_for "$version")
    if [ -z "$wheel" ]; then
        GNND_PYTHONS=$version ./wheels.sh --cuda OFF "$wheels"
        wheel=$(wheel_for "$version")
    fi
    local built=$SECONDS
    "$python" -m venv "$work/env-$version"
    "$work/env-$version/bin/pip" -q install "${wheel}[$extras]"
    local installed=$SECONDS
    # From elsewhere, so that the package's sources are no candidate for `import gnnd`.
    (
        cd "$work"
        "env-$version/bin/python" -c "
import gnnd, sys
assert gnnd.__file__.startswith('$work/env-$version'), gnnd.__file__
print(f'== Python {sys.version.split()[0]}: gnnd {gnnd.__version__} from', gnnd.__file__)"
        pytest() {
            "env-$version/bin/pytest" -q -rs -n "$(nproc)" --dist worksteal -p no:cacheprovider \
                -c "$OLDPWD/pyproject.toml" --rootdir "$OLDPWD" "$@"
        }
        if [ "$extras" = test ]; then
            pytest "$OLDPWD/tests" "$@"
        else
            pytest --ignore "$OLDPWD/tests/tools" "$OLDPWD/tests" "$@"
            pytest --durations 0 "$OLDPWD/tests/tools" | tee tools.log
            if grep -q '^SKIPPED' tools.log; then
                echo "test.sh: tests of tools were left out, although all were to be installed" >&2
                exit 1
            fi
        fi
    )
    echo "== Python $version: $((built - start)) s to build, $((installed - built)) s to install, $((SECONDS - installed)) s to test;" \
        "$(stat -c %s "$wheel") bytes: $(basename "$wheel")"
}

versions=() pythons=()
for version in ${GNND_PYTHONS:-3.11 3.12}; do
    if python=$(find_python "$version"); then
        versions+=("$version") pythons+=("$python")
    else
        echo "== Python $version: none here that has venv and its headers; not tested"
    fi
done
if [ "${#versions[@]}" -eq 0 ]; then
    echo "test.sh: no interpreter at all; contrib/setup.sh python installs Debian's" >&2
    exit 1
fi
for i in "${!versions[@]}"; do
    extras="test"
    if [ -n "$tools" ] && [ "$i" -eq $((${#versions[@]} - 1)) ]; then extras="test,tools"; fi
    test_with "${versions[i]}" "${pythons[i]}" "$extras" "$@"
done
