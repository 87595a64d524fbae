"""At the terminal: the word that says that a device shows another address, while the command waits for the
device. devices unlock, identify, cancel: what a device asks, at a terminal.
"""

import contextlib
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from custody.common.terminal import Exit
from firmware_bridge import DeviceState, Question
from signerd.cli.progress import OFFER, accepting_other_address
from signerd.errors import AddressNotShown
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
    with terminal() as (person, given), accepting_other_address(lambda: daemon, told.append, at=given):
        os.write(person, b"what?\nanother\nAnother\n")
        assert daemon.heard.wait(PATIENCE)
    assert daemon.said == ["two", "two"]
    assert told == [OFFER, "No address is on your device's screen."]
    # It ends with the waiting; without a terminal nothing is read and nothing offered.
    with Path(os.devnull).open() as given, accepting_other_address(lambda: daemon, told.append, at=given):
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
