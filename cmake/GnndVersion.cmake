# SPDX-License-Identifier: MIT
# Reads the version from gnnd/version.h, where it is written: sets GNND_VERSION for project().
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../gnnd/version.h parts REGEX "^#define GNND_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
list(TRANSFORM parts REPLACE "^#define [A-Z_]+ ([0-9]+).*" "\\1")
list(JOIN parts "." GNND_VERSION)
unset(parts)
