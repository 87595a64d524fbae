"""The crash harness: kills a daemon at its n-th fault point, starts it again, and checks the invariants.

``python -m tests.support.crash FOLDER`` plays each story undisturbed, and then kills at a drawn third of the
points that it passes, each time in a folder of its own. ``TEST_EXAMPLES=3`` kills at every one. It
prints a JSON line for each story with its points, and one for each kill. The daemon runs in a forked child
that ends by SIGKILL: no ``finally`` runs, nothing is flushed.

Invariants at every point: what is to be submitted is, in the end; every submission carries the same
bytes under the same key; once a signature is stored the device is not asked again, and a second time only
where the kill came between asking it and storing; the audit chain is whole;
no person is asked twice for the same decision.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from signerd.runtime import no_fault
from tests.support.crash_others import AIRGAP, IMPORTED, RESTORED, TOKENS
from tests.support.crash_stories import KEPT_BY, Story, count
from tests.support.crash_stories import STORIES as OF_PROPOSALS
from tests.support.examples import drawn
from tests.support.fake_platform import FakePlatform
from tests.support.forked import in_child

STORIES = (*OF_PROPOSALS, IMPORTED, TOKENS, AIRGAP, RESTORED)
# Kills at one point, at most: another round of polling shows nothing new.
MOST_PASSINGS = {"journal": 2, "device": 2}
MOST_PASSINGS_AGAIN = 4
# Every run kills here: between recording, asking and sending.
ALWAYS = frozenset(
    {
        "journal:after:Approved", "journal:after:DeviceFound", "journal:after:DeviceReturned",
        "journal:after:SubmitStarted", "platform:before:_sign_psbt", "network:before:sign-psbt",
        "network:after:sign-psbt", "platform:after:_sign_psbt", "journal:before:SubmitAccepted",
        "journal:after:Exported", "card:before:write", "card:after:write",
    }
)  # fmt: skip


@dataclass
class Killer:
    """A fault point hook: kills this process when it passes one point for the n-th time.

    The daemon does several things at once: a file says whether the kill came amid an answer that
    is not stored yet.
    """

    point: str
    passing: int
    amid: Path
    seen: Counter[str] = field(default_factory=Counter)
    unkept: str = ""

    def __call__(self, point: str) -> None:
        self.seen[point] += 1
        if point in KEPT_BY:
            self.unkept = point
        if point == self.point and self.seen[point] == self.passing:
            self.amid.write_text(self.unkept)
            os.kill(os.getpid(), signal.SIGKILL)
        if point == KEPT_BY.get(self.unkept):
            self.unkept = ""


def new_folder(root: Path, story: Story, name: str) -> Path:
    folder = root / story.name / name
    (folder / "state").mkdir(parents=True, mode=0o700)
    story.prepare(folder)
    return folder


def points_of_a_run(root: Path, story: Story) -> Counter[str]:
    """Every fault point that an undisturbed run passes, and how often."""
    folder = new_folder(root, story, "undisturbed")

    def run() -> None:
        seen: list[str] = []
        asyncio.run(story.live(folder, seen.append))
        (folder / "points").write_text("\n".join(seen))

    in_child(run)
    wrong = story.faults(folder, "")
    if wrong:
        raise SystemExit(f"{story.name}, undisturbed: {wrong}")
    return Counter((folder / "points").read_text().splitlines())


def kill_at(root: Path, story: Story, point: str, passing: int) -> dict[str, object]:
    """Kills once, restarts until the story is done, and returns what is wrong then."""
    folder = new_folder(root, story, f"{point.replace(':', '-')}-{passing}")
    killer = Killer(point, passing, folder / "amid")
    killed = in_child(lambda: asyncio.run(story.live(folder, killer))) == signal.SIGKILL
    try:
        in_child(lambda: asyncio.run(story.live(folder, no_fault)))
    except SystemExit as error:
        raise SystemExit(f"{story.name}, killed at {point}, passing {passing}: {error}") from None
    return {
        "story": story.name,
        "point": point,
        "passing": passing,
        "killed": killed,
        "submissions": sum(told["decision"] == "approve" for told in FakePlatform(folder).told()),
        "asked": count(folder / "prompts"),
        "wrong": story.faults(folder, _amid(folder) or point),
    }


def _amid(folder: Path) -> str:
    told = folder / "amid"
    return told.read_text() if told.exists() else ""


def kills_of(story: Story, passed: Counter[str], known: set[str]) -> list[tuple[str, int]]:
    """Kills at the points that no earlier story passed (``known``), and at those that the story names."""
    kills = []
    for point in sorted(passed):
        if point in story.again:
            most = MOST_PASSINGS_AGAIN
        else:
            most = 0 if point in known else MOST_PASSINGS.get(point.split(":")[0], 1)
        kills += [(point, passing) for passing in range(1, min(passed[point], most) + 1)]
    chosen = drawn(kills, -(-len(kills) // 3), of=story.name)
    return [kill for kill in kills if kill in chosen or (kill[0] in ALWAYS and kill[1] == 1)]


def main(root: Path) -> None:
    known: set[str] = set()
    for story in STORIES:
        passed = points_of_a_run(root, story)
        print(json.dumps({"story": story.name, "points": sorted(passed)}), flush=True)  # noqa: T201 - this is a program
        for kill in kills_of(story, passed, known):
            print(json.dumps(kill_at(root, story, *kill)), flush=True)  # noqa: T201
        known |= passed.keys()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
