"""HWI's own Digital Bitbox client against a peer with a real seed; never tried on a Digital Bitbox."""

import base64
import json
from contextlib import contextmanager

import pytest
from hwilib.devices import digitalbitbox as hwi

from device_simulators.conformance.rigs import ACCOUNT, NETWORK, QUICK
from firmware_bridge import Bridge, DeviceState, Question, errors
from firmware_bridge.families import MAKERS
from firmware_bridge.hwi_client import digitalbitbox as driver
from firmware_bridge.hwi_client import open_device
from firmware_bridge.hwi_client.base import failure
from firmware_bridge.model import Family
from firmware_bridge.protocol import Opening
from multisig import DerivationPath, Psbt, recover_message_key, signer_progress
from tests.support.digitalbitbox_peer import DigitalBitboxPeer, plugged_in
from tests.support.driver import Person
from tests.support.peers import SEED, VAULT, outcome_of, sign_args
from tests.support.wallets import make_spend

PASSWORD = "correct horse"


@contextmanager
def opened(peer, *, session=PASSWORD, answer=None):
    person = Person(on_ask={Question.PASSWORD: answer}.get)
    with plugged_in(peer) as endpoint:
        device = open_device(endpoint, NETWORK, person, Opening(session=session))
        try:
            yield device, person
        finally:
            device.close()


def test_a_probe_sends_no_password_whatever_it_knows():
    peer = DigitalBitboxPeer(SEED, password="another")
    with opened(peer) as (device, person):
        assert device.call("probe", {})["obstacle"] is None
    with opened(peer, session=None) as (device, person):
        told = device.call("probe", {})
        assert (told["obstacle"], told["detail"]) == (errors.Locked.code, "It needs its password.")
    assert peer.commands == ["ping", "ping"]
    assert peer.attempts == 10
    assert person.asked == []


def test_a_device_without_a_password_says_what_to_do():
    with opened(DigitalBitboxPeer(SEED, password=None), session=None) as (device, _person):
        told = device.call("probe", {})
    assert told["obstacle"] == errors.Unsupported.code
    assert "set it up" in told["detail"]


def test_a_password_unlocks_and_is_kept_for_the_next_worker():
    peer = DigitalBitboxPeer(SEED)
    with opened(peer, session=None, answer=PASSWORD) as (device, person):
        unlocked = device.call("unlock", {})
        assert unlocked == {"fingerprint": str(SEED.fingerprint), "session": PASSWORD}
        assert device.call("fingerprint", {}) == str(SEED.fingerprint)
    assert person.asked == [Question.PASSWORD]
    assert peer.attempts == 10


def test_without_a_person_to_ask_it_is_locked_and_no_try_is_spent():
    peer = DigitalBitboxPeer(SEED)
    with opened(peer, session=None) as (device, _person):
        for op in ("unlock", "fingerprint", "identify"):
            assert outcome_of(device, op)[0] == errors.Locked.code
    assert peer.commands == []


def test_a_wrong_password_costs_one_try_and_says_how_many_are_left():
    peer = DigitalBitboxPeer(SEED)
    with opened(peer, session=None, answer="wrong") as (device, _person):
        code, detail = outcome_of(device, "unlock")
    assert code == errors.Locked.code
    assert detail == "9 attempts remain before the device is reset."
    assert peer.attempts == 9


def test_an_unseeded_device_is_no_signer():
    with opened(DigitalBitboxPeer(SEED, seeded=False), answer=PASSWORD) as (device, _person):
        assert outcome_of(device, "unlock")[0] == errors.Unsupported.code


def test_keys_are_of_our_network():
    with opened(DigitalBitboxPeer(SEED)) as (device, _person):
        answer = device.call("xpubs", {"paths": [str(ACCOUNT)]})
    assert answer == {"fingerprint": str(SEED.fingerprint), "xpubs": [str(SEED.xpub(ACCOUNT, NETWORK))]}


# HWI sends 15 hashes at a time.
@pytest.mark.parametrize("inputs", [1, 16])
def test_a_transaction_is_signed(inputs):
    psbt = make_spend(VAULT, n_inputs=inputs)
    with opened(DigitalBitboxPeer(SEED)) as (device, person):
        signed = Psbt.parse(device.call("sign", sign_args(psbt)))
    assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
    assert "no screen" in person.told[0][1]


@pytest.mark.parametrize("text", ["hello", "über", "u\u0308ber"])
def test_a_message_is_signed(text):
    path = DerivationPath.parse("m/84h/1h/0h/0/0")
    with opened(DigitalBitboxPeer(SEED)) as (device, _person):
        answer = device.call("sign_message", {"text": text, "path": str(path)})
    assert recover_message_key(text, base64.b64decode(answer)) == SEED.public_key(path)


def test_it_blinks():
    peer = DigitalBitboxPeer(SEED)
    with opened(peer) as (device, _person):
        assert device.call("identify", {}) is None
    assert peer.commands == ["led"]


@pytest.mark.parametrize("op", ["enrol", "show_address"])
def test_what_it_has_no_screen_for_is_unsupported(op):
    with opened(DigitalBitboxPeer(SEED)) as (device, _person):
        assert outcome_of(device, op)[0] == errors.Unsupported.code


def test_a_person_may_refuse():
    with opened(DigitalBitboxPeer(SEED, decide=lambda: False)) as (device, _person):
        assert outcome_of(device, "sign", sign_args(make_spend(VAULT)))[0] == errors.RefusedByPerson.code


@pytest.mark.parametrize("code", [503, "503"])
def test_a_number_is_read_in_either_form(code):
    with opened(DigitalBitboxPeer(SEED, errors={"xpub": (code, "busy")})) as (device, _person):
        assert outcome_of(device, "fingerprint") == (errors.Busy.code, "busy")


def test_an_error_that_hwi_does_not_know_is_none_the_less_an_error():
    with opened(DigitalBitboxPeer(SEED, errors={"xpub": (999, "strange")})) as (device, _person):
        assert outcome_of(device, "fingerprint") == (errors.DeviceFault.code, "strange")


def test_a_device_that_leaves_ends_the_waiting():
    with opened(DigitalBitboxPeer(SEED, vanish_at="sign")) as (device, _person):
        assert outcome_of(device, "sign", sign_args(make_spend(VAULT)))[0] == errors.Disconnected.code


def test_garbage_is_a_fault(monkeypatch):
    peer = DigitalBitboxPeer(SEED)
    monkeypatch.setattr(DigitalBitboxPeer, "answer", lambda _self, _datagram: b"\xff\xff")
    with opened(peer) as (device, _person):
        assert outcome_of(device, "fingerprint")[0] == errors.DeviceFault.code


class Hid:
    """hidapi's device with a firmware 5 behind it: frames of 64 bytes."""

    def __init__(self, peer, *, gone=None, serial="dbb.fw:v5.0.0"):
        self.peer, self.gone, self.serial = peer, gone, serial
        self.received, self.frames = b"", []

    def open_path(self, path):
        self.path = path

    def get_serial_number_string(self):
        return self.serial

    def write(self, report):
        frame = report[1:]
        if frame[4] == hwi.HWW_CMD:
            self.size, self.received = int.from_bytes(frame[5:7]), frame[7:]
        else:
            self.received += frame[5:]
        if len(self.received) >= self.size:
            self._answer(self.peer.answer(bytes(self.received[: self.size])))

    def _answer(self, answer):
        head = hwi.HWW_CID.to_bytes(4) + bytes([hwi.HWW_CMD]) + len(answer).to_bytes(2)
        self.frames = [(head + answer[:57]).ljust(64, b"\0")]
        for number, start in enumerate(range(57, len(answer), 59)):
            frame = hwi.HWW_CID.to_bytes(4) + bytes([number]) + answer[start : start + 59]
            self.frames.append(frame.ljust(64, b"\0"))

    def read(self, _size):
        if self.gone is not None and len(self.frames) <= 1:
            return self.gone()
        return list(self.frames.pop(0))

    def close(self):
        pass


@contextmanager
def over_usb(monkeypatch, device):
    monkeypatch.setattr(driver.hid, "device", lambda: device)
    wire = driver._Hid("1-1:1.0")
    yield driver.DigitalBitboxDevice(wire, NETWORK, Person(), PASSWORD)


def test_usb_carries_the_same(monkeypatch):
    with over_usb(monkeypatch, Hid(DigitalBitboxPeer(SEED))) as device:
        assert device.call("fingerprint", {}) == str(SEED.fingerprint)
        assert device.call("probe", {})["firmware"] == "5.0.0"


def read_error():
    raise OSError("read error")


@pytest.mark.parametrize("gone", [list, read_error])
def test_a_device_that_is_pulled_out_ends_the_waiting(monkeypatch, gone):
    with over_usb(monkeypatch, Hid(DigitalBitboxPeer(SEED), gone=gone)) as device:
        assert outcome_of(device, "fingerprint")[0] == errors.Disconnected.code


def test_a_bootloader_is_told(monkeypatch):
    with over_usb(monkeypatch, Hid(DigitalBitboxPeer(SEED), serial="dbb.bl:v2.0.0")) as device:
        assert "bootloader" in device.call("probe", {})["detail"]


NUMBERS = sorted(
    {int(code) for code in (*hwi.bad_args, *hwi.device_failures, *hwi.cancels, hwi.ERR_MEM_SETUP)}
)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_of_the_device_has_an_outcome(number):
    outcome = failure(Family.DIGITALBITBOX, driver.DeviceSaid(number, "words"))
    assert outcome.code == MAKERS[Family.DIGITALBITBOX].statuses.get(number, errors.DeviceFault.code)
    assert outcome.detail == "words"


def test_secrets_are_in_no_error(caplog):
    peer = DigitalBitboxPeer(SEED, password="another")
    with opened(peer, session="a-very-secret-word") as (device, _person):
        _code, detail = outcome_of(device, "fingerprint")
    assert "a-very-secret-word" not in json.dumps([detail, caplog.text])


@pytest.mark.anyio
async def test_a_refused_password_is_not_sent_again():
    """Ten wrong ones wipe the device; a bridge that kept one would send it at every operation."""
    peer = DigitalBitboxPeer(SEED)
    with plugged_in(peer) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge:
            (device,) = await bridge.refresh()
            assert device.state == DeviceState.LOCKED
            assert (await bridge.unlock(device.id, right)).fingerprint == SEED.fingerprint
            peer.password = "changed with its own app"
            for _try in range(3):
                with pytest.raises(errors.Locked):
                    await bridge.fingerprint(device.id)
                await bridge.refresh()
            assert peer.attempts == 9


async def right(_question):
    return PASSWORD


@pytest.mark.anyio
async def test_a_bridge_drives_it_in_a_worker():
    with plugged_in(DigitalBitboxPeer(SEED)) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge:
            (device,) = await bridge.refresh()
            await bridge.unlock(device.id, right)
            await bridge.enrol(device.id, VAULT, "treasury")
            signed = await bridge.sign(device.id, make_spend(VAULT), VAULT)
            assert signer_progress(signed, VAULT, SEED.fingerprint).is_complete
