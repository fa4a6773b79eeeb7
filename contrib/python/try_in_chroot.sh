#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the wheel on a bare Debian, in a folder, with nothing but its Python, and runs the examples of both READMEs, the
# tool and the tests there.
# Usage: contrib/python/try_in_chroot.sh RELEASE [FOLDER]   (bookworm, trixie, ...; FOLDER of wheels, default: out/wheels)
# Needs root and debootstrap. The bare system is kept in ~/.cache/gnnd/chroot/RELEASE, what is installed in it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

release=${1:?which release? bookworm, trixie, ...}
wheels=$(realpath "${2:-../../out/wheels}")
if [ "$(id -u)" -ne 0 ]; then
    echo "try_in_chroot.sh: only root can make a root folder; sudo contrib/python/try_in_chroot.sh $*" >&2
    exit 1
fi
if ! command -v debootstrap >/dev/null; then
    echo "try_in_chroot.sh: no debootstrap; apt-get install debootstrap" >&2
    exit 1
fi
if ! ls "$wheels"/gnnd-*.whl >/dev/null 2>&1; then
    echo "try_in_chroot.sh: no wheels in $wheels; contrib/python/wheels.sh builds them" >&2
    exit 1
fi

cache="${XDG_CACHE_HOME:-$HOME/.cache}/gnnd"
root="$cache/chroot/$release"
if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --include=python3,python3-venv,binutils "$release" "$root" >"$root.log" || {
        tail -5 "$root.log" >&2
        exit 1
    }
    touch "$root/complete"
fi
version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
echo "== $release: Python $version, $(chroot "$root" ldd --version | sed -n '1s/.* //p;q') of glibc, gcc: $(chroot "$root" sh -c 'command -v gcc || echo none')"

# The packages come in by a folder: the bare system needs no network. The last three are what the repository's README needs.
needed="numpy pytest hypothesis ml_dtypes scikit-learn tqdm faiss-cpu pynndescent distributed"
packages="$cache/chroot/packages-$version"
mkdir -p "$packages"
if [ "$(cat "$packages/complete" 2>/dev/null)" != "$needed" ]; then
    python3 -m venv "$cache/chroot/pip"
    # shellcheck disable=SC2086 # a list
    "$cache/chroot/pip/bin/pip" -q download --python-version "$version" --only-binary :all: -d "$packages" \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 \
        $needed
    echo "$needed" >"$packages/complete"
fi

try="$root/root/try"
end() {
    umount "$root/proc" "$root/dev" 2>/dev/null || true
    rm -rf "$try"
}
trap end EXIT
rm -rf "$try"
# As in the repository, so that the tests find both READMEs.
mkdir -p "$try/contrib/python"
cp -r tests README.md pyproject.toml "$try/contrib/python/"
cp ../../README.md "$try/"
cp "$packages"/*.whl "$wheels"/gnnd-*.whl "$try/"
echo "$needed" >"$try/needed"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"

# The package's README has its example between the first fences; it speaks of vectors x. That of the repository's README is run
# by a test, which leaves out what is not installed: here nothing may be.
cat >"$try/run.sh" <<'SCRIPT'
set -eu
cd /root/try
python3 -m venv env
env/bin/pip -q install --no-index --find-links . gnnd $(cat needed)
mkdir elsewhere && cd elsewhere
tests=../contrib/python/tests
run_tests() { ../env/bin/pytest -q -rs -p no:cacheprovider -c ../contrib/python/pyproject.toml --rootdir ../contrib/python "$@"; }
{
    echo 'import numpy'
    echo 'x = numpy.random.default_rng(0).normal(size=(2000, 24)).astype("float32")'
    sed -n '/^```python/,/^```/{/^```/d;p}' ../contrib/python/README.md
    echo 'print("== the example:", graph, graph.stats["device_reason"] or "on a GPU")'
} >example.py
../env/bin/python example.py
../env/bin/python -c 'import numpy; numpy.save("x.npy", numpy.random.default_rng(0).normal(size=(2000, 24)).astype("float32"))'
../env/bin/gnnd build x.npy -k 10 -q -o x.gnnd >/dev/null
../env/bin/python -m gnnd eval x.gnnd x.npy
run_tests $tests/test_docs.py::test_the_readme_runs | tee readme.log
if ! grep -q '^1 passed' readme.log; then
    echo "try_in_chroot.sh: not all of the README's example was run" >&2
    exit 1
fi
run_tests $tests
SCRIPT
start=$SECONDS
chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 OMP_WAIT_POLICY=passive bash /root/try/run.sh
echo "== $release: all of it in $((SECONDS - start)) s"
