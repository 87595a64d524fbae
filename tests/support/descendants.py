"""The descendants of a process, from /proc (proc_pid_stat(5))."""

import time
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="this system does not list its processes"
)


def _state_and_parent(pid: str) -> tuple[str, int]:
    """("gone", 0) for a process that has ended."""
    try:
        # The command's name is in brackets and may contain any character.
        state, parent, *_rest = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "gone", 0
    return state, int(parent)


def descendants(pid: int) -> list[int]:
    parents = {int(one.name): _state_and_parent(one.name)[1] for one in Path("/proc").glob("[0-9]*")}
    found, seen = [], [pid]
    while seen:
        children = [child for child, parent in parents.items() if parent in seen]
        found += children
        seen = children
    return found


def command_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def until_gone(*pids: int, seconds: float = 60) -> None:
    """A zombie counts as gone."""
    ends = time.monotonic() + seconds
    while left := [pid for pid in pids if _state_and_parent(str(pid))[0] not in {"gone", "Z"}]:
        assert time.monotonic() < ends, [(pid, command_of(pid)) for pid in left]
        time.sleep(0.05)
