#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the wheel that others install, as wheels.sh has repaired and checked it, for Python 3.11 and 3.12, where there are
# such interpreters (in PATH or pyenv's), each into a fresh environment, and runs tests/ there against what was installed.
# Usage: contrib/python/test.sh [--wheels FOLDER] [--tools] [options of pytest]
# --wheels: takes what it finds there; what it does not find it builds, with the CPU backend. --tools: for the last of the
# interpreters umap-learn, hdbscan, scanpy and Jupyter are installed, too, and each test of them must run. All tests that are
# left out are named, and why, but those of builds that are disturbed: these run with the last of the interpreters alone, since
# they are about processes, which no version treats otherwise, and take the longest. What the extras name is installed anew
# every week; it stays in ~/.cache/gnnd/python, as environments for building do. GNND_PYTHONS="3.10 3.13" chooses other
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

packages() { # interpreter, name, wheel with extras; prints the folder of all that is installed with the wheel, without gnnd
    local kept made
    kept="${XDG_CACHE_HOME:-$HOME/.cache}/gnnd/python/$2-$(date +%G-%V)"
    if [ ! -d "$kept" ]; then
        mkdir -p "$(dirname "$kept")"
        made=$(mktemp -d "$kept.XXXXXX") || return 1
        { "$1" -m venv "$made" && "$made/bin/pip" -q install "$3" && "$made/bin/pip" -q uninstall --yes gnnd; } >&2 || {
            rm -rf "$made"
            return 1
        }
        mv -T "$made" "$kept" || rm -rf "$made" # somebody else has made it meanwhile
        find "$(dirname "$kept")" -maxdepth 1 -name "${2}-*" -mtime +14 -exec rm -rf {} +
    fi
    (cd "$kept"/lib/python*/site-packages && pwd)
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
    local environment="$work/env-$version" others
    others=$(packages "$python" "test-$version-${extras//,/-}" "${wheel}[$extras]")
    "$python" -m venv "$environment"
    echo "import site; site.addsitedir('$others')" >"$("$environment/bin/python" -c \
        'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth"
    "$environment/bin/pip" -q install "${wheel}[$extras]" # and what has come to the extras since
    local installed=$SECONDS
    # From elsewhere, so that the package's sources are no candidate for `import gnnd`.
    (
        cd "$work"
        "env-$version/bin/python" -c "
import gnnd, sys
assert gnnd.__file__.startswith('$work/env-$version'), gnnd.__file__
print(f'== Python {sys.version.split()[0]}: gnnd {gnnd.__version__} from', gnnd.__file__)"
        pytest() { # with one more at a time than there are processors, since many of them wait
            "env-$version/bin/python" -m pytest -q -rs -n "$(($(nproc) + 1))" --dist worksteal -p no:cacheprovider \
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
    extras="test" some=(-m "not disturbed")
    if [ "$i" -eq $((${#versions[@]} - 1)) ]; then
        if [ -n "$tools" ]; then extras="test,tools"; fi
        some=()
    fi
    test_with "${versions[i]}" "${pythons[i]}" "$extras" "${some[@]}" "$@"
done
