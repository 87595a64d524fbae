"""HWI's own Jade library against a peer with a real seed; never tried on a Jade."""

import anyio
import pytest
from hwilib.devices.jadepy import jade as jadepy

from firmware_bridge import Bridge, DeviceState, errors
from firmware_bridge.operations import Probed
from multisig import CHANGE, Psbt, signer_progress
from tests.conformance.rigs import ACCOUNT, NETWORK, QUICK, make_vault
from tests.support.driver import sign_args
from tests.support.jade_peer import JadePeer
from tests.support.peers import OWNER, VAULT, address_args, enrol_args, opened, outcome_of, plugged_in
from tests.support.wallets import make_spend


def test_a_ready_device_tells_who_it_is():
    with opened(JadePeer(OWNER.seed)) as (device, _person):
        assert device.call("probe", {}) == Probed(
            "Jade Plus", fingerprint=str(OWNER.fingerprint), firmware="1.0.33"
        )
        assert device.call("fingerprint", {}) == str(OWNER.fingerprint)
        xpub = str(OWNER.seed.xpub(ACCOUNT, NETWORK))
        assert device.call("xpubs", {"paths": [str(ACCOUNT)]}).xpubs == (xpub,)


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ({"state": "LOCKED"}, errors.Locked.code, "companion app"),
        ({"state": "UNSAVED"}, errors.Uninitialised.code, "not saved"),
        ({"state": "UNINIT"}, errors.Uninitialised.code, ""),
        ({"state": "DREAMING"}, errors.Unsupported.code, "DREAMING"),
        ({"networks": "MAIN"}, errors.WrongApp.code, "main network"),
        ({"version": "1.0.22"}, errors.Unsupported.code, "update"),
        ({"doing": 1}, errors.Busy.code, "another program"),
        ({"doing": 2}, errors.Busy.code, "menu"),
    ],
)
def test_an_obstacle_is_reported_without_a_request(told, code, words):
    peer = JadePeer(OWNER.seed, **told)
    with opened(peer) as (device, _person):
        answer = device.call("probe", {})
    assert answer.obstacle == code
    assert words in (answer.detail or "")
    assert answer.fingerprint is None
    assert set(peer.methods) <= {"ping", "get_version_info"}


@pytest.mark.parametrize("op", ["fingerprint", "unlock"])
def test_a_locked_device_is_never_unlocked_over_the_network(op, monkeypatch):
    called = []
    monkeypatch.setattr(jadepy, "_http_request", called.append, raising=False)
    peer = JadePeer(OWNER.seed, state="LOCKED")
    with opened(peer) as (device, _person):
        code, detail = outcome_of(device, op)
        assert code == errors.Locked.code
        assert "companion app" in detail
    assert "auth_user" not in peer.methods
    assert called == []


@pytest.mark.parametrize("method", ["auth_user", "get_version_info", "get_xpub"])
def test_a_server_that_a_device_names_in_any_answer_is_not_called(method, monkeypatch):
    called = []
    monkeypatch.setattr(jadepy, "_http_request", called.append, raising=False)
    peer = JadePeer(OWNER.seed)
    asking = {"http_request": {"params": {}, "on-reply": "pin"}}
    setattr(peer, f"do_{method}", lambda _params: asking)
    with opened(peer) as (device, _person):
        code, _detail = outcome_of(device, "fingerprint")
    assert (code, called) == (errors.Locked.code, [])


def test_a_probe_does_not_bind_a_wallet_to_our_network():
    peer = JadePeer(OWNER.seed, networks="ALL")
    with opened(peer) as (device, _person):
        answer = device.call("probe", {})
    assert (answer.obstacle, answer.fingerprint) == (None, None)
    assert "auth_user" not in peer.methods


def test_a_vault_is_enrolled_once_and_shown_by_its_keys():
    peer = JadePeer(OWNER.seed)
    with opened(peer) as (device, person):
        assert outcome_of(device, "show_address", address_args(VAULT)) == (errors.NotEnrolled.code, None)
        device.call("enrol", enrol_args())
        device.call("enrol", enrol_args(name="other"))
        assert list(peer.registered) == ["treasury"]
        assert device.call("show_address", address_args(VAULT)) == VAULT.address(CHANGE, 3)
        device.call("enrol", enrol_args(again=True))
    assert peer.methods.count("register_multisig") == 2
    assert person.steps == ["confirm-enrolment", "confirm-address", "confirm-enrolment"]


def test_a_name_that_is_taken_is_not_overwritten():
    peer = JadePeer(OWNER.seed)
    with opened(peer) as (device, _person):
        device.call("enrol", enrol_args(make_vault(threshold=3)))
        code, detail = outcome_of(device, "enrol", enrol_args())
        assert code == errors.Unsupported.code
        assert "another vault" in detail
        assert peer.registered["treasury"]["threshold"] == 3


@pytest.mark.parametrize(
    "lie",
    [
        lambda wallet: wallet.update(threshold=1),
        lambda wallet: wallet.update(sorted=False),
        lambda wallet: wallet.update(variant="sh(wsh(multi(k)))"),
        lambda wallet: wallet["signers"][1].update(path=[7]),
    ],
)
def test_another_quorum_or_path_is_not_taken_for_the_vault(lie):
    peer = JadePeer(OWNER.seed)
    with opened(peer) as (device, _person):
        device.call("enrol", enrol_args())
        lie(peer.registered["treasury"])
        assert outcome_of(device, "sign", sign_args(make_spend(VAULT), VAULT))[0] == errors.NotEnrolled.code


@pytest.mark.parametrize("chunk", [50, 100_000])
def test_a_transaction_is_signed(chunk):
    psbt = make_spend(VAULT, n_inputs=3)
    with opened(JadePeer(OWNER.seed, chunk=chunk)) as (device, person):
        device.call("enrol", enrol_args())
        signed = Psbt.parse(device.call("sign", sign_args(psbt, VAULT)))
    assert signer_progress(signed, VAULT, OWNER.fingerprint).is_complete
    assert person.steps[-1] == "confirm-transaction"


@pytest.mark.parametrize(
    ("method", "op", "args"),
    [
        ("register_multisig", "enrol", enrol_args()),
        ("sign_psbt", "sign", sign_args(make_spend(OWNER.profile()), OWNER.profile())),
        ("get_receive_address", "show_address", address_args(OWNER.profile())),
        ("sign_message", "sign_message", {"text": "hello", "path": "m/84h/1h/0h/0/0"}),
    ],
)
def test_a_person_may_refuse(method, op, args):
    with opened(JadePeer(OWNER.seed, decide=lambda asked: asked != method)) as (device, _person):
        assert outcome_of(device, op, args)[0] == errors.RefusedByPerson.code


@pytest.mark.parametrize("method", ["get_version_info", "get_xpub", "sign_psbt"])
def test_a_device_that_leaves_ends_the_waiting(method):
    own = OWNER.profile()
    with opened(JadePeer(OWNER.seed, vanish_at=method)) as (device, _person):
        args = sign_args(make_spend(own), own)
        op = "sign" if method == "sign_psbt" else "fingerprint"
        assert outcome_of(device, op, args)[0] == "disconnected"


def test_a_device_that_shows_a_question_is_busy_and_not_waited_for():
    peer = JadePeer(OWNER.seed, doing=1)
    with opened(peer) as (device, _person):
        assert outcome_of(device, "fingerprint")[0] == errors.Busy.code
    assert peer.methods == ["ping"]


def test_late_answers_to_another_host_are_dropped():
    stale = [
        {"id": "404", "result": "tpub-of-somebody"},
        {"id": "00", "error": {"code": -32600, "message": "x"}},
    ]
    with opened(JadePeer(OWNER.seed, stale=stale)) as (device, _person):
        assert device.call("fingerprint", {}) == str(OWNER.fingerprint)


@pytest.mark.anyio
async def test_a_bridge_drives_it_in_a_worker():
    with plugged_in(JadePeer(OWNER.seed)) as endpoint:
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=QUICK) as bridge:
            (device,) = await bridge.refresh()
            assert (device.state, device.fingerprint) == (DeviceState.READY, OWNER.fingerprint)
            psbt = make_spend(VAULT)
            with pytest.raises(errors.NotEnrolled):
                await bridge.sign(device.id, psbt, VAULT)
            await bridge.enrol(device.id, VAULT, "treasury")
            signed = await bridge.sign(device.id, psbt, VAULT)
            assert signer_progress(signed, VAULT, OWNER.fingerprint).is_complete
            await anyio.lowlevel.checkpoint()
