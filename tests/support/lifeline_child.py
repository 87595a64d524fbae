"""The child of ``tests/signerd/test_runtime.py``: ``waits``, ``ignores`` SIGTERM,
``talks`` to itself, or ``ends``.
"""

import os
import signal
import sys
import threading
import time


def say(words: str) -> None:
    # A signal may arrive during a write, and a buffered one cannot be entered again.
    os.write(1, f"{words}\n".encode())


def ignore(_number: int, _frame: object) -> None:
    say("told to end")
    told.set()


def passes(seconds: float) -> None:
    """In the place of ``time.sleep``: the time that a child has to end is over once it was told."""
    told.wait()
    say(f"had {seconds} seconds")


part, told = sys.argv[1], threading.Event()
sleep = time.sleep
if part == "ignores":
    signal.signal(signal.SIGTERM, ignore)
    time.sleep = passes
say("here")
while part == "talks":
    pass
if part != "ends":
    sleep(600)
    sleep(600)
