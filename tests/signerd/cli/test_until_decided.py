"""What the terminal tells between a yes and its outcome: each thing once, with what the person can do."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from signerd.cli.progress import until_decided
from signerd.errors import DaemonNotRunning

OURS, OTHER = "6f9141f8", "c2db0da8"
DO = f"Connect your device, the one with the fingerprint {OURS}, and unlock it."


class Daemon:
    """What it says of one proposal, line by line; its state is that of the last state line."""

    def __init__(self, *lines, devices=(), reason=""):
        self.lines, self.there, self.reason, self.state = lines, devices, reason, "waiting-for-device"

    def status(self):
        return SimpleNamespace(position=1, fingerprint=OURS)

    def devices(self):
        return self.there

    def proposal(self, _psbt_id):
        return SimpleNamespace(state=self.state, reason=self.reason)

    @contextmanager
    def follow(self, *, after):
        assert after == 0
        yield self._told()

    def _told(self):
        for kind, text in self.lines:
            self.state = text if kind == "state" else self.state
            yield SimpleNamespace(subject="p-1", kind=kind, text=text)


def told_by(daemon):
    told = []
    until_decided(daemon, "p-1", 0, told.append)
    return told


def device(fingerprint, advice=None):
    return SimpleNamespace(fingerprint=fingerprint, advice=advice)


@pytest.mark.parametrize(
    ("devices", "do"),
    [
        ((), DO),
        ((device(OTHER),), DO),
        ((device(None, "Enter the PIN."),), "Enter the PIN."),
        ((device(OTHER), device(OURS)), None),
    ],
    ids=["none", "another", "locked", "there"],
)
def test_where_the_device_is_not_there_the_person_is_told_what_to_do(devices, do):
    [first, last] = told_by(Daemon(("state", "waiting-for-device"), ("state", "submitted"), devices=devices))
    waits = "approved, waits for your device"
    asked = "It is asked as soon as it is ready; Ctrl-C leaves the approval as it is."
    assert first == (waits if do is None else f"{waits}. {do} {asked}")
    assert last == "the platform has your signature"


def test_a_platform_that_is_away_is_told_once_with_the_reason():
    tries = (("state", "submitting"), ("state", "signed")) * 5
    screen = ("progress", "Confirm the total and the fee on the device")
    daemon = Daemon(
        *(screen, screen, ("state", "signed"), *tries, ("state", "submitted")),
        reason="The platform gave no answer.",
    )
    told = told_by(daemon)
    assert told[:4] == [
        screen[1],
        "signed, not submitted yet",
        "being submitted",
        "The platform gave no answer. It is signed, and signerd goes on trying. Ctrl-C leaves it to that.",
    ]
    assert told[4:5] == ["the platform has your signature"]
    with pytest.raises(DaemonNotRunning):
        told_by(Daemon(screen))


def test_what_is_refused_for_now_ends_with_the_reason_which_says_what_happens_next():
    reason = "Signed and kept: it is frozen. signerd submits it again."
    lines = (("state", "submitting"), ("attention", reason), ("state", "kept"))
    assert told_by(Daemon(*lines, reason=reason)) == ["being submitted", reason]
    assert told_by(Daemon(lines[0], *lines[:0:-1], reason=reason)) == ["being submitted", reason]
