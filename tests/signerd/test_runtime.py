"""A child of ours ends with the program that started it, also where that was killed."""

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import signerd
from custody import common
from custody.common import children

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


pytestmark = needs_proc

# Starts this module as its child with a lifeline, says when the child stands, and waits.
PARENT = """
import subprocess, sys, time
from custody.common import children
subprocess.Popen(children.command("tests.support.lifeline_child", sys.argv[1]), pass_fds=children.passed())
time.sleep(600)
"""
# The same, but it is killed at once.
KILLED = """
import os, signal, subprocess, sys
from custody.common import children
command = children.command("tests.support.lifeline_child", "waits")
silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
child = subprocess.Popen(command, pass_fds=children.passed(), **silent)
os.write(2, str(child.pid).encode())
os.kill(os.getpid(), signal.SIGKILL)
"""


def begun(request: pytest.FixtureRequest, part: str) -> subprocess.Popen[str]:
    """The parent; its child has said that it is there."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, part],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(request.config.rootpath)},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "here\n"
    return parent


@pytest.mark.parametrize("part", ["waits", "ignores", "talks"])
def test_a_child_ends_with_its_killed_parent(request, part):
    """One that waits, one that ignores SIGTERM, and one that is at work in Python all the time."""
    parent = begun(request, part)
    family = descendants(parent.pid)
    assert len(family) == 1
    parent.kill()
    until_gone(*family)
    said, _ = parent.communicate()
    # SIGTERM comes first: a daemon lets its devices go.
    assert said == (f"told to end\nhad {children.FAREWELL_SECONDS} seconds\n" if part == "ignores" else "")


def test_a_child_whose_parent_was_killed_before_it_ran_a_line_ends(request):
    """It begins with the end of the line: no moment is missed."""
    parent = subprocess.run(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(request.config.rootpath)},
        check=False,
    )
    until_gone(int(parent.stderr))


def test_a_child_lives_and_ends_as_it_would_without(request):
    parent = begun(request, "ends")
    (child,) = descendants(parent.pid)
    until_gone(child)
    assert parent.poll() is None
    parent.kill()
    parent.communicate()


def test_every_child_of_signerd_is_started_with_one():
    """Device workers apart, which end with their channel: see ``firmware_bridge/test_lane.py``. And programs
    of the system's own, which do one thing and end.
    """
    starting = re.compile(
        r"^(subprocess\.(run|Popen|call|check_\w+)|asyncio\.create_subprocess_\w+|os\.(spawn|posix_spawn)\w*)$"
    )
    found = 0
    packages = (Path(signerd.__file__).parent, Path(common.__file__).parent)
    for path in (path for package in packages for path in package.rglob("*.py")):
        if path.match("cli/service.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and starting.match(ast.unparse(node.func)):
                found += 1
                assert re.search(r"children\.command\(", ast.unparse(node)), path
                assert re.search(r"pass_fds=children\.passed\(\)", ast.unparse(node)), path
    assert found >= 3
