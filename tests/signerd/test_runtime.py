"""A child of ours ends with the program that started it, also where that was killed."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import signerd
from custody import common
from tests.support.descendants import descendants, needs_proc, until_gone

pytestmark = needs_proc

# Starts this module as its child with a lifeline, says when the child stands, and waits.
PARENT = """
import subprocess, sys, time
from signerd import runtime
subprocess.Popen(runtime.command("tests.support.lifeline_child", sys.argv[1]), pass_fds=runtime.passed())
time.sleep(600)
"""
# The same, but it is killed at once.
KILLED = """
import os, signal, subprocess, sys
from signerd import runtime
command = runtime.command("tests.support.lifeline_child", "waits")
silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
child = subprocess.Popen(command, pass_fds=runtime.passed(), **silent)
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
    assert said == ("told to end\n" if part == "ignores" else "")


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
        if path.match("cli/system.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and starting.match(ast.unparse(node.func)):
                found += 1
                assert re.search(r"(runtime|children)\.command\(", ast.unparse(node)), path
                assert re.search(r"pass_fds=(runtime|children)\.passed\(\)", ast.unparse(node)), path
    assert found >= 4
