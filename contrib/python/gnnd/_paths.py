# SPDX-License-Identifier: MIT
"""Names of files, which need be no text in any encoding."""

from __future__ import annotations

import os

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def path_of(given: Path, name: str = "path") -> str:
    """A file's name as a str; bytes in it that are no text stand there as surrogates, as of :func:`os.fsdecode`.

    :param name: of the argument, for messages
    :raises TypeError: for what is no path, ValueError for one that no file can have
    """
    try:
        path = os.fsdecode(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(f"{name} must be a path, as str, bytes or os.PathLike, not {kind}: {given!r}") from None
    if b"\0" in os.fsencode(path):
        raise ValueError(f"{name} = {path!r} has a null character in it, which no file's name has")
    return path


def existing(given: Path, name: str = "path") -> str:
    """The same of a file that must be there. :raises FileNotFoundError:"""
    path = path_of(given, name)
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    return path
