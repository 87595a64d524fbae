"""Which files the signer's programs make, by Python's own audit events, and whether others may read them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = f"{Path(__file__).parents[2]}{os.sep}"
OURS = tuple(f"{ROOT}{package}/" for package in ("signerd", "firmware_bridge", "custody/common"))
# Units and rules, which the system reads.
PUBLIC = tuple(f"{ROOT}signerd/{module}" for module in ("cli/service.py", "udev/"))
_made: list[set[str]] = []


def _by_us() -> bool:
    """Whether the first function of this project on the stack is a program's, and not a test's."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return name.startswith(OURS) and not name.startswith(PUBLIC)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _made or event not in {"open", "os.rename", "os.chmod"}:
        return
    if event == "open" and isinstance(args[0], str | Path) and args[2] & os.O_CREAT and _by_us():
        if Path(args[0]).parent.name == "__pycache__":
            return  # Python's own, of what a program imports late.
        _made[-1].add(os.fspath(args[0]))
    elif event == "os.rename" and os.fspath(args[0]) in _made[-1] and not os.path.lexists(args[1]):
        # What replaces the person's own file keeps its mode.
        _made[-1].add(os.fspath(args[1]))
    elif event == "os.chmod" and not _by_us():
        _made[-1].discard(str(args[0]))


sys.addaudithook(_hear)


@contextmanager
def none_open_to_others() -> Iterator[None]:
    """What is made meanwhile and is still there at the end: though files are usually for all to read here."""
    before = os.umask(0o022)
    _made.append(made := set())
    try:
        yield
    finally:
        _made.pop()
        os.umask(before)
    modes = {name: f"{os.lstat(name).st_mode:o}" for name in made if Path(name).exists()}
    assert [name for name, mode in modes.items() if not mode.endswith("00")] == [], modes
