"""Work that is counted, and never timed: calls of functions, of Python or of C, in this thread."""

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def counted(run: Callable[[], T], of: Callable[..., object] | None = None) -> tuple[T, int]:
    """What it gives, and how many calls it took: all, or those ``of`` one function."""
    calls = 0
    code = None if of is None else of.__code__

    def called(frame, event: str, _of: object) -> None:
        nonlocal calls
        if event in {"call", "c_call"} and (code is None or (frame.f_code is code and event == "call")):
            calls += 1

    sys.setprofile(called)
    try:
        return run(), calls
    finally:
        sys.setprofile(None)
