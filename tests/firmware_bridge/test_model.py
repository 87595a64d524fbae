"""States, events and endpoints as values."""

import itertools
from dataclasses import replace

import pytest

from firmware_bridge.model import Device, DeviceState, Endpoint, IllegalDeviceTransition
from multisig import Fingerprint

ENDPOINT = Endpoint.parse("trezor:udp:127.0.0.1:21324")


VERBS = {
    "appeared": lambda device, _: device.appeared(),
    "left": lambda device, _: device.left(),
    "at_work": Device.at_work,
    "found": Device.found,
}
# How a state may change: the verb, from which states, to which. Any other raises IllegalTransition.
A, P = DeviceState.ABSENT, DeviceState.PROBING
AT_REST = set(DeviceState) - {A, P}
LEGAL = {
    ("appeared", A, DeviceState.PRESENT),
    *(("left", state, A) for state in set(DeviceState) - {A}),
    *(("at_work", state, work) for state in AT_REST for work in (P, DeviceState.BUSY)),
    *(("found", work, state) for work in (P, DeviceState.BUSY) for state in set(DeviceState) - {P}),
    *(("found", state, A) for state in set(DeviceState) - {A}),
    ("found", DeviceState.PRESENT, DeviceState.UNSUPPORTED),
    ("found", DeviceState.PRESENT, DeviceState.NO_PERMISSION),
}


@pytest.mark.parametrize(("verb", "old", "new"), list(itertools.product(VERBS, DeviceState, DeviceState)))
def test_every_change_is_legal_or_raises_and_changes_nothing(verb, old, new):
    device = replace(Device.at(ENDPOINT, "Trezor"), state=old)
    fixed = {"appeared": DeviceState.PRESENT, "left": A}
    if (verb, old, fixed.get(verb, new)) in LEGAL:
        assert VERBS[verb](device, new).state == fixed.get(verb, new)
    else:
        with pytest.raises(IllegalDeviceTransition):
            VERBS[verb](device, new)
        assert device.state == old


def test_who_leaves_is_forgotten():
    device = replace(
        Device.at(ENDPOINT, "Trezor"), state=DeviceState.READY, label="Mine", fingerprint=Fingerprint(b"abcd")
    )
    gone = device.left()
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
