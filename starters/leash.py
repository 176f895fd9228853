"""Become another program that ends when its parent does: `python leash.py PARENT PROGRAM [ARG…]`.

Run as a script of its own, so that nothing has to be done between fork and exec of a process with
threads. Where the system knows no such leash (it is Linux's), the program simply runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Replace this process by the program; its process id stays the same."""
    parent, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent):
            sys.exit("the parent ended before its child began")
    os.execv(command[0], command)  # noqa: S606 - the point of this script


if __name__ == "__main__":
    main(sys.argv[1:])
