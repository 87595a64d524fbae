"""The child of ``tests/signerd/test_runtime.py``: ``waits``, ``ignores`` SIGTERM,
``talks`` to itself, or ``ends``.
"""

import signal
import sys
import time


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def ignore(_number: int, _frame: object) -> None:
    say("told to end")


part = sys.argv[1]
if part == "ignores":
    signal.signal(signal.SIGTERM, ignore)
say("here")
while part == "talks":
    pass
if part != "ends":
    time.sleep(600)
    time.sleep(600)
