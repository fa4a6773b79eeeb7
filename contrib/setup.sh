#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, from apt. Usage: contrib/setup.sh [build] [test] [tsan] [lint] [docs] [ccache] [python] [faiss-gpu]
# (default: build test)
# As root or with sudo; does nothing when everything is there.
set -euo pipefail

packages_for() {
    case $1 in
        build) echo g++ cmake ninja-build libfaiss-dev libopenblas-dev libxxhash-dev libcli11-dev nlohmann-json3-dev ;;
        test) echo libgtest-dev libbenchmark-dev ;;
        tsan) echo clang libomp-dev ;;
        lint) echo git clang-format clang-tidy libomp-dev shellcheck python3-venv ;;
        docs) echo doxygen ;;
        ccache) echo ccache ;;
        python) echo g++ cmake ninja-build libxxhash-dev libcli11-dev nlohmann-json3-dev python3-dev python3-venv patchelf ;;
        faiss-gpu) echo dpkg-dev ca-certificates ;;
        *)
            echo "setup.sh: unknown set of packages: $1 (build, test, tsan, lint, docs, ccache, python, faiss-gpu)" >&2
            return 2
            ;;
    esac
}

# A package may be there for other architectures, too.
is_installed() {
    dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
        grep -qxE "(all|$(dpkg --print-architecture)) installed"
}

[ $# -gt 0 ] || set -- build test
wanted=""
for set in "$@"; do
    wanted="$wanted $(packages_for "$set")"
done
read -ra wanted <<<"$wanted"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup.sh: not a Debian: install what these Debian packages hold, if it is not there yet:" >&2
    echo "  ${wanted[*]}" >&2
    exit 0
fi

missing=()
for package in "${wanted[@]}"; do
    is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup.sh: everything is installed ($*)"
    exit 0
fi

echo "setup.sh: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
quiet_apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" </dev/null
}
quiet_apt update
quiet_apt install -y --no-install-recommends "${missing[@]}"
