"""HWI's own BitBox02 library against a peer with a real channel and seed; never tried on a BitBox02."""

import threading
from contextlib import contextmanager

import pytest

from firmware_bridge import Bridge, DeviceState, Question, errors
from multisig import CHANGE, DerivationPath, Psbt, signer_progress
from tests.conformance.rigs import NETWORK, QUICK, SEEDS
from tests.support.bitbox02_peer import BitBox02Peer
from tests.support.bitbox02_wallet import Wallet
from tests.support.driver import sign_args
from tests.support.peers import (
    OWNER,
    VAULT,
    address_args,
    enrol_args,
    opened,
    outcome_of,
    plugged_in,
    says_nothing,
    says_yes,
)
from tests.support.wallets import make_spend

PATH = DerivationPath.parse("m/84h/1h/0h/0/0")


def peer_of(**options):
    wallet = {
        name: options.pop(name) for name in ("decide", "initialized", "honest_nonce") if name in options
    }
    return BitBox02Peer(Wallet(options.pop("seed", OWNER.seed), **wallet), patience=0, **options)


@contextmanager
def paired(peer):
    with opened(peer) as (device, person):
        device.call("unlock", {})
        person.told.clear()
        yield device, person


@pytest.mark.parametrize(
    ("told", "model", "code", "words"),
    [
        ({"unlocked": False}, "BitBox02", errors.Locked.code, "password"),
        ({}, "BitBox02", errors.Locked.code, "not paired"),
        ({"platform": 2, "edition": 1}, "BitBox02 Nova Bitcoin-only", errors.Locked.code, "not paired"),
        ({"initialized": False}, "BitBox02", errors.Uninitialised.code, ""),
        ({"version": "v10.0.0"}, "BitBox02", errors.Unsupported.code, "v10.0.0"),
        ({"version": "v9.4.2"}, "BitBox02", errors.Unsupported.code, "prove its nonces"),
        ({"platform": 7}, "BitBox02", errors.Unsupported.code, "does not know"),
    ],
)
def test_a_probe_makes_the_device_show_nothing(told, model, code, words):
    peer = peer_of(**told)
    with opened(peer) as (device, person):
        answer = device.call("probe", {})
    assert (answer.model, answer.obstacle) == (model, code)
    assert words in (answer.detail or "")
    assert peer.operations == []
    assert person.steps == []


WORK = [
    ("fingerprint", {}),
    ("sign", sign_args(make_spend(VAULT), VAULT)),
    ("enrol", enrol_args()),
    ("show_address", address_args(VAULT)),
]


@pytest.mark.parametrize(("op", "args"), WORK)
@pytest.mark.parametrize("told", [{"unlocked": False}, {}])
def test_work_does_not_unlock_or_pair_by_the_way(op, args, told):
    peer = peer_of(**told)
    with opened(peer) as (device, _person):
        assert outcome_of(device, op, args)[0] == errors.Locked.code
    assert peer.operations == []


def test_a_person_unlocks_and_pairs_once_and_the_next_worker_brings_the_keys():
    peer = peer_of(unlocked=False)
    with opened(peer) as (device, person):
        answer = device.call("unlock", {})
        assert answer.fingerprint == str(OWNER.fingerprint)
    assert person.steps == ["enter-password", "not-attested", "compare-pairing"]
    assert person.asked == [Question.PAIRING]
    peer.operations.clear()
    with opened(peer, session=answer.session, on_ask=says_nothing) as (device, person):
        told = device.call("probe", {})
        assert (told.obstacle, told.label, told.firmware) == (None, "My BitBox", "9.23.0")
        assert told.fingerprint == str(OWNER.fingerprint)
    assert b"v" not in peer.operations
    assert person.steps == []


def test_another_device_at_the_same_place_is_not_taken_for_the_paired_one():
    with opened(peer_of()) as (device, _person):
        session = device.call("unlock", {}).session
    other = peer_of(static=b"\x22" * 32, seed=SEEDS[1])
    with opened(other, session=session) as (device, person):
        assert outcome_of(device, "fingerprint")[0] == errors.Locked.code
    assert b"v" not in other.operations
    assert person.asked == []


@pytest.mark.parametrize(("on_ask", "refused"), [(says_yes, "pairing"), (says_nothing, "")])
def test_a_pairing_needs_approval_at_both_ends(on_ask, refused):
    """S21: the device's approval may come from a man in the middle."""
    with opened(peer_of(decide=lambda question: question != refused), on_ask=on_ask) as (device, _person):
        assert outcome_of(device, "unlock")[0] == errors.RefusedByPerson.code


def test_a_vault_is_enrolled_once_under_its_own_name():
    peer = peer_of()
    with paired(peer) as (device, person):
        device.call("enrol", enrol_args())
        device.call("enrol", enrol_args(name="other"))
        assert list(peer.wallet.registered.values()) == ["treasury"]
        device.call("enrol", enrol_args(name="other", again=True))
        assert list(peer.wallet.registered.values()) == ["other"]
    assert person.steps == ["confirm-enrolment", "confirm-enrolment"]


@pytest.mark.parametrize("op", ["sign", "show_address"])
def test_a_vault_is_not_registered_in_the_middle_of_something_else(op):
    peer = peer_of()
    with paired(peer) as (device, _person):
        args = sign_args(make_spend(VAULT), VAULT) if op == "sign" else address_args(VAULT)
        assert outcome_of(device, op, args)[0] == errors.NotEnrolled.code
    assert "register_script_config" not in peer.wallet.asked


def test_addresses_are_shown():
    own = OWNER.profile()
    with paired(peer_of()) as (device, _person):
        device.call("enrol", enrol_args())
        assert device.call("show_address", address_args(VAULT)) == VAULT.address(CHANGE, 3)
        assert device.call("show_address", address_args(own)) == own.address(CHANGE, 3)


def test_a_vaults_transaction_is_signed_with_both_sides_nonce():
    psbt = make_spend(VAULT, n_inputs=3)
    with paired(peer_of()) as (device, person):
        device.call("enrol", enrol_args())
        signed = Psbt.parse(device.call("sign", sign_args(psbt, VAULT)))
    assert signer_progress(signed, VAULT, OWNER.fingerprint).is_complete
    assert person.steps[-1] == "confirm-transaction"


def test_a_nonce_without_our_part_is_no_signature():
    """A device could tell its seed to the world by the nonces that it chooses."""
    own = OWNER.profile()
    with paired(peer_of(honest_nonce=False)) as (device, _person):
        code, detail = outcome_of(device, "sign", sign_args(make_spend(own), own))
    assert code == errors.DeviceFault.code
    assert "leak the seed" in detail


class Downgraded(BitBox02Peer):
    """Reports a current version first, and to HWI's library one that is too old for the proof."""

    asked = 0

    def _info(self):
        self.asked += 1
        self.version = "v9.23.0" if self.asked == 1 else "v9.3.1"
        return super()._info()


def test_s20_a_device_cannot_avoid_the_proof_of_its_nonces():
    with opened(Downgraded(Wallet(OWNER.seed), patience=0)) as (device, _person):
        code, detail = outcome_of(device, "unlock")
        assert (code, "prove its nonces" in detail) == (errors.Unsupported.code, True)
        assert outcome_of(device, "fingerprint")[0] == errors.Unsupported.code


@pytest.mark.parametrize(
    ("question", "op", "args"),
    [
        ("register", "enrol", enrol_args()),
        ("sign", "sign", sign_args(make_spend(OWNER.profile()), OWNER.profile())),
        ("address", "show_address", address_args(OWNER.profile())),
        ("message", "sign_message", {"text": "hello", "path": str(PATH)}),
    ],
)
def test_a_person_may_refuse(question, op, args):
    with paired(peer_of(decide=lambda asked: asked != question)) as (device, _person):
        assert outcome_of(device, op, args)[0] == errors.RefusedByPerson.code


def test_a_busy_device_is_not_waited_for_without_an_end():
    with opened(peer_of(busy=1_000)) as (device, _person):
        assert outcome_of(device, "unlock")[0] == errors.Busy.code


def test_a_cancel_reaches_the_screen_of_the_password():
    peer = peer_of(unlocked=False, endless=True)
    with opened(peer) as (device, _person):
        threading.Timer(0.3, device.cancel).start()
        assert outcome_of(device, "unlock")[0] == errors.RefusedByPerson.code
    assert peer.cancelled


@pytest.mark.parametrize("operation", [b"a", b"H", b"n"])
def test_a_device_that_leaves_ends_the_waiting(operation):
    with opened(peer_of(vanish_at=operation)) as (device, _person):
        assert outcome_of(device, "unlock")[0] == errors.Disconnected.code


async def yes(_question):
    return "yes"


@pytest.mark.anyio
async def test_a_bridge_drives_it_in_a_worker():
    with plugged_in(peer_of(unlocked=False)) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge:
            (device,) = await bridge.refresh()
            assert device.state == DeviceState.LOCKED
            told = []
            device = await bridge.unlock(device.id, yes, on_progress=told.append)
            assert any("code" in progress.text for progress in told)
            await bridge.enrol(device.id, VAULT, "treasury")
            signed = await bridge.sign(device.id, make_spend(VAULT), VAULT)
            assert signer_progress(signed, VAULT, OWNER.fingerprint).is_complete


@pytest.mark.anyio
async def test_a_pairing_outlives_the_cable():
    peer = peer_of()
    with plugged_in(peer) as endpoint:
        bridge = Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK)
        (device,) = await bridge.refresh()
        await bridge.unlock(device.id, yes)
    async with bridge:
        assert await bridge.refresh() == ()
        peer.unlocked = False
        peer.operations.clear()
        with plugged_in(peer, int(endpoint.address.rpartition(":")[2])):
            (device,) = await bridge.refresh()
            assert device.state == DeviceState.LOCKED
            assert (await bridge.unlock(device.id, yes)).fingerprint == OWNER.fingerprint
    assert b"u" in peer.operations
    assert b"v" not in peer.operations
