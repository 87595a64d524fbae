"""At the terminal: the word that says that a device shows another address, while the command waits for the
device.
"""

import contextlib
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from signerd.cli.progress import OFFER, may_say_another
from signerd.errors import AddressNotShown

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


def test_the_word_reaches_the_device_that_is_registered():
    daemon, told = Daemon(), []
    with terminal() as (person, given), may_say_another(lambda: daemon, told.append, at=given):
        os.write(person, b"what?\nAnother\n")
        assert daemon.heard.wait(PATIENCE)
    assert daemon.said == ["two"]
    assert told == [OFFER]


def test_where_no_address_is_on_the_screen_that_is_said_and_the_person_may_say_it_again():
    daemon, told = Daemon(AddressNotShown("none")), []
    with terminal() as (person, given), may_say_another(lambda: daemon, told.append, at=given):
        os.write(person, b"another\nanother\n")
        assert daemon.heard.wait(PATIENCE)
    assert daemon.said == ["two", "two"]
    assert told == [OFFER, "No address is on your device's screen."]


@pytest.mark.parametrize("failure", [None, RuntimeError("of the body")])
def test_it_ends_with_the_waiting(failure):
    with terminal() as (_person, given):
        before = threading.active_count()
        with contextlib.suppress(RuntimeError), may_say_another(Daemon, [].append, at=given):
            if failure is not None:
                raise failure
        assert threading.active_count() == before


def test_without_a_terminal_nothing_is_read_and_nothing_offered():
    told = []
    with Path(os.devnull).open() as given, may_say_another(Daemon, told.append, at=given):
        pass
    assert told == []
