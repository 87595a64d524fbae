"""At the terminal: the word that says that a device shows another address, while the command waits for the
device; what a device asks; what is told between a yes and its outcome, each thing once.
"""

import contextlib
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from custody.common.terminal import Exit
from firmware_bridge import DeviceState, Question
from signerd.cli.desk import Desk
from signerd.cli.progress import OFFER, accepting_other_address, until_decided
from signerd.errors import AddressNotShown, DaemonNotRunning
from tests.support.command import signerd
from tests.support.wallets import ALICE, BOB

PATIENCE = 10.0


class Daemon:
    """Two devices, of which the second holds the registered keys."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.said = []
        self.heard = threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def status(self):
        return SimpleNamespace(fingerprint="0a0a0a0a")

    def devices(self):
        return [SimpleNamespace(id=id_, fingerprint=key) for id_, key in (("one", None), ("two", "0a0a0a0a"))]

    def another_address(self, device_id):
        self.said.append(device_id)
        self.heard.set()
        if self.failures:
            self.heard.clear()
            raise self.failures.pop(0)


@contextlib.contextmanager
def terminal():
    ours, theirs = os.openpty()
    try:
        with os.fdopen(theirs, "r") as given:
            yield ours, given
    finally:
        os.close(ours)


def test_s13_the_word_reaches_the_device_that_is_registered_and_may_be_said_again():
    daemon, told, before = Daemon(AddressNotShown("none")), [], threading.active_count()
    desk = cast("Desk", SimpleNamespace(connect=lambda: daemon, tell=told.append))
    with terminal() as (person, given), accepting_other_address(desk, at=given):
        os.write(person, b"what?\nanother\nAnother\n")
        assert daemon.heard.wait(PATIENCE)
    assert daemon.said == ["two", "two"]
    assert told == [OFFER, "No address is on your device's screen."]
    # It ends with the waiting; without a terminal nothing is read and nothing offered.
    with Path(os.devnull).open() as given, accepting_other_address(desk, at=given):
        assert threading.active_count() == before
    assert len(told) == 2


# Nine digits: four stand in some random id by chance.
PIN = "791379137"


@pytest.fixture
def outer(outer):
    outer.bridge.state = DeviceState.LOCKED
    outer.bridge.secrets = {Question.PIN: PIN}
    return outer


def test_l10_what_was_typed_is_neither_shown_nor_sent_where_it_cannot_be_a_place(desk):
    signerd("devices", "unlock", state=desk.state, ends=Exit.USAGE)  # nobody is there to answer
    signerd("devices", "unlock", state=desk.state, typed="a\nb\nc\n", ends=Exit.USAGE)
    wrong = signerd("devices", "unlock", "--json", state=desk.state, typed="1111\n", ends=Exit.DEVICE)
    assert wrong.error["code"] == "device-failed"
    assert "wrong" in wrong.error["sentence"]
    ended = signerd("devices", "unlock", state=desk.state, typed=f"12a4\n0\n{PIN}\n")
    assert "7 8 9\n      4 5 6\n      1 2 3" in ended.out
    assert f"Unlocked. Its fingerprint is {ALICE.fingerprint}." in ended.out
    assert "THIS IS NOT" not in ended.out
    assert (ended.out + ended.err).count("The places are the figures 1 to 9.") == 2
    assert PIN not in ended.out + ended.err


def test_another_passphrase_opens_another_wallet_and_that_is_said(desk, outer):
    outer.bridge.secrets = {Question.PASSPHRASE: "horse"}
    outer.bridge.signer = BOB
    ended = signerd("devices", "unlock", state=desk.state, typed="horse\n")
    assert "Every passphrase opens a wallet of its own" in ended.out
    assert f"THIS IS NOT the key that is registered here ({ALICE.fingerprint})" in ended.out


OURS, OTHER = "6f9141f8", "c2db0da8"
DO = f"Connect your device, the one with the fingerprint {OURS}, and unlock it."


class Telling:
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


def device(fingerprint, advice=None, detail=None):
    return SimpleNamespace(fingerprint=fingerprint, advice=advice, detail=detail)


@pytest.mark.parametrize(
    ("devices", "do"),
    [
        ((), DO),
        ((device(OTHER),), DO),
        ((device(None, "Enter the PIN."),), "Enter the PIN."),
        ((device(OTHER), device(OURS)), None),
        ((device(OURS, "Answer no there.", "An old question."),), "An old question. Answer no there."),
    ],
    ids=["none", "another", "locked", "there", "busy"],
)
def test_where_the_device_is_not_there_the_person_is_told_what_to_do(devices, do):
    [first, last] = told_by(Telling(("state", "waiting-for-device"), ("state", "submitted"), devices=devices))
    waits = "approved, waits for your device"
    asked = "It is asked as soon as it is ready; Ctrl-C leaves the approval as it is."
    assert first == (waits if do is None else f"{waits}. {do} {asked}")
    assert last == "the platform has your signature"


def test_a_platform_that_is_away_is_told_once_with_the_reason():
    tries = (("state", "submitting"), ("state", "signed")) * 5
    screen = ("progress", "Confirm the total and the fee on the device")
    daemon = Telling(
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
        told_by(Telling(screen))


def test_what_is_refused_for_now_ends_with_the_reason_which_says_what_happens_next():
    reason = "Signed and kept: it is frozen. signerd submits it again."
    lines = (("state", "submitting"), ("attention", reason), ("state", "kept"))
    assert told_by(Telling(*lines, reason=reason)) == ["being submitted", reason]
    assert told_by(Telling(lines[0], *lines[:0:-1], reason=reason)) == ["being submitted", reason]
