"""States, events and endpoints as values."""

import itertools
from dataclasses import replace

import pytest

from firmware_bridge.model import (
    TRANSITIONS,
    Device,
    DeviceState,
    Endpoint,
    Happening,
    IllegalTransition,
    next_state,
)
from multisig import Fingerprint

ENDPOINT = Endpoint.parse("trezor:udp:127.0.0.1:21324")


@pytest.mark.parametrize(("state", "happening"), list(itertools.product(DeviceState, Happening)))
def test_every_pair_is_in_the_table_or_raises(state, happening):
    if (state, happening) in TRANSITIONS:
        assert next_state(state, happening) == TRANSITIONS[state, happening]
    else:
        with pytest.raises(IllegalTransition):
            next_state(state, happening)


def test_an_absent_device_can_only_appear():
    assert {happening for state, happening in TRANSITIONS if state == DeviceState.ABSENT} == {
        Happening.APPEARED
    }


def test_every_state_can_be_left_by_unplugging():
    for state in set(DeviceState) - {DeviceState.ABSENT}:
        assert next_state(state, Happening.VANISHED) == DeviceState.ABSENT


def test_a_device_being_asked_is_not_put_to_use_nor_asked_again():
    for happening in (Happening.USE_STARTED, Happening.PROBE_STARTED):
        with pytest.raises(IllegalTransition):
            next_state(DeviceState.PROBING, happening)


def test_every_state_is_reached():
    assert set(TRANSITIONS.values()) == set(DeviceState)


def test_an_illegal_event_changes_nothing():
    device = Device.at(ENDPOINT, "Trezor")
    with pytest.raises(IllegalTransition):
        device.after(Happening.FOUND_READY)
    assert device == Device.at(ENDPOINT, "Trezor")


def test_who_leaves_is_forgotten():
    device = replace(
        Device.at(ENDPOINT, "Trezor"), state=DeviceState.READY, label="Mine", fingerprint=Fingerprint(b"abcd")
    )
    gone = device.after(Happening.VANISHED)
    assert (gone.state, gone.fingerprint, gone.label) == (DeviceState.ABSENT, None, None)


@pytest.mark.parametrize(
    ("text", "kind", "place", "emulated"),
    [
        ("trezor:udp:127.0.0.1:21324", "udp", "127.0.0.1:21324", True),
        ("coldcard:unix:/tmp/a:b.sock", "unix", "/tmp/a:b.sock", True),
        ("ledger:tcp:127.0.0.1:9999", "tcp", "127.0.0.1:9999", True),
        ("coldcard:hid:1-2:1.0", "hid", "1-2:1.0", False),
        ("trezor:webusb:001:2:4", "webusb", "001:2:4", False),
    ],
)
def test_endpoints_are_read_and_written(text, kind, place, emulated):
    endpoint = Endpoint.parse(text)
    assert (endpoint.kind, endpoint.place, endpoint.emulated) == (kind, place, emulated)
    assert str(endpoint) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "endpoint is family"),
        ("trezor", "endpoint is family"),
        ("trezor:", "endpoint is family"),
        ("trezor:somewhere", "endpoint is family"),
        ("abacus:udp:127.0.0.1:1", "no family 'abacus' in .*: trezor, coldcard, ledger"),
        ("trezor:127.0.0.1:21324", "no kind of address '127.0.0.1' in .*: udp, unix, tcp"),
        ("trezor:udp:127.0.0.1", "does not end in a port"),
        ("ledger:tcp:localhost:x", "does not end in a port"),
        ("ledger:tcp::9999", "does not end in a port"),
    ],
)
def test_what_is_no_endpoint_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Endpoint.parse(text)


def test_an_id_is_of_the_endpoint_and_fit_for_a_url():
    assert ENDPOINT.device_id == Endpoint.parse(str(ENDPOINT)).device_id
    assert ENDPOINT.device_id != Endpoint.parse("trezor:udp:127.0.0.1:21326").device_id
    assert ENDPOINT.device_id.replace("-", "").isalnum()
