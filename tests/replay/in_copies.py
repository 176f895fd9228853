"""The gate's verdicts in several copies of the code: `python -m tests.replay` in each.

    python -m tests.replay.in_copies < ORDERS     # JSON: [[TREE, RESULT, [NAME, ...]], ...]

Each runs in a process of its own, and all are forked from one that has loaded the libraries, which
takes longer than the replays. Of our own code a fork knows nothing yet, so it is the copy's.
"""

import gc
import json
import os
import runpy
import sys
import traceback

from tests.replay import gate

_OURS = ("domain", "activities", "workflows", "workers", "starters", "northwind", "tests")


def main() -> None:
    """Judge in one copy after the other; each result is written where the order says."""
    gc.freeze()
    for tree, result, names in json.load(sys.stdin):
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            _judge(tree, result, names)
        os.waitpid(child, 0)


def _judge(tree: str, result: str, names: list[str]) -> None:
    """Be `python -m tests.replay` in a copy, and end. An error output stands where results do."""
    code = 1
    try:
        for descriptor in (1, 2):
            os.dup2(os.open(result, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
        for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
            del sys.modules[name]
        os.chdir(tree)
        sys.path.insert(0, tree)
        sys.argv = ["tests.replay", *names]
        runpy.run_module("tests.replay", run_name="__main__", alter_sys=True)
        code = 0
    except BaseException:  # noqa: BLE001 - it must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    # What was loaded by it is loaded for all; its own code is each copy's.
    del gate
    main()
