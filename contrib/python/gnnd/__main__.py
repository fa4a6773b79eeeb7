# SPDX-License-Identifier: MIT
"""The command-line tool: `python -m gnnd`, and `gnnd` where the package's scripts are in PATH.

It has no FAISS in it: what needs FAISS says so. Exit codes: 0 done, 1 a file or its data is not as it must be, 2 wrong
usage; a signal ends a command cleanly, and the process then dies of it.
"""

from __future__ import annotations

import os
import signal
import sys

from . import _native


def main() -> int:
    """Carries out the command in ``sys.argv``; the exit code."""
    if sys.argv[1:2] == ["worker"]:  # which is Python's alone
        from .distributed._worker import main as worker

        return worker(sys.argv[2:])
    # Python ignores it: a reader that wants no more, `| head`, should end the command without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # Names of files need not be text in any encoding: surrogates stand for their bytes.
    arguments = ["gnnd", *sys.argv[1:]]
    return _native.run_tool([os.fsencode(one) for one in arguments], [os.fsencode(one) for one in sys.orig_argv])


if __name__ == "__main__":
    sys.exit(main())
