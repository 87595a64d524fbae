"""The child of ``tests/signerd/test_runtime.py``: ``waits``, ``ignores`` SIGTERM,
``talks`` to itself, or ``ends``.
"""

import os
import signal
import sys
import time


def say(words: str) -> None:
    # A signal may arrive during a write, and a buffered one cannot be entered again.
    os.write(1, f"{words}\n".encode())


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
