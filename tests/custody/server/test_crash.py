"""Processes that are killed between the last signature and the confirmation (P12, P13):
nothing is lost or done twice.

Here a payment and, by turns, another story, at every few steps;
``python -m tests.support.platform_crash`` kills at every one.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.examples import drawn
from tests.support.platform_crash import STORIES

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 1200
# In each turn: the first kill, and how many steps further the next is.
PAYMENT = ("payment", "postgresql", 27, 60)
OTHERS = (
    ("payment", "sqlite", 9, 60),
    ("bump", "sqlite", 18, 60),
    ("unfreeze", "sqlite", 5, 20),
    ("change", "sqlite", 3, 20),
    ("replace", "sqlite", 9, 30),
)


@pytest.fixture
def root() -> Iterator[Path]:
    """Letters and figures only: databases are named after it."""
    folder = Path(tempfile.mkdtemp(prefix="crash"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow(
    "kills at many steps of whole lives: service/network/test_broadcast.py has the two that matter most"
)
@pytest.mark.parametrize(("name", "kind", "first", "stride"), [PAYMENT, *drawn(OTHERS, 1, of=__name__)])
def test_whichever_process_is_killed_everything_ends_confirmed_once(
    name: str, kind: str, first: int, stride: int, root: Path, request: pytest.FixtureRequest
) -> None:
    database = kind if kind == "sqlite" else str(request.getfixturevalue("postgresql").folder)
    command = [sys.executable, "-m", "tests.support.platform_crash", str(root), database, name]
    done = subprocess.run(
        [*command, str(first), str(stride)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert [kill for kill in kills if kill["wrong"] or kill["kills"] != 1] == []
    (story,) = (story for story in STORIES if story.name == name)
    assert {kill["turn"] for kill in kills} == {turn.name for turn in story.turns}
