"""The whole daemon over a scripted platform and a scripted device: the main job, and what may come between."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from firmware_bridge import (
    BridgeError,
    Device,
    DeviceState,
    Disconnected,
    Locked,
    NotEnrolled,
    RefusedByPerson,
)
from multisig import ChangeTo, Psbt, build_psbt, sats
from signerd.core.states import State
from signerd.errors import (
    IllegalEvent,
    JournalUnwritable,
    KeyringTimedOut,
    NoRegisteredKey,
    NotOurVault,
    PlatformAnswersWrongly,
    PlatformRefused,
    RegistrationStale,
    SignedOut,
    SignInFailed,
    StaleApproval,
    VaultDiffers,
    WrongCode,
)
from signerd.journal import StateFolder
from signerd.loopback.service import DaemonService
from tests.support.daemons import (
    MemoryStore,
    approve,
    daemon_at,
    make_config,
    prepare,
    until,
    until_state,
)
from tests.support.desk import VAULT, VAULT_ID, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, OTP, PASSWORD, FakePlatform, problem
from tests.support.wallets import ALICE, BOB, MALLORY, fund, make_vault, pay

pytestmark = pytest.mark.anyio
HONEST = snapshot_of(spend())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    return FakePlatform(tmp_path, {"p-1": HONEST})


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge()


async def test_a_proposal_is_seen_approved_signed_and_submitted(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        port: DaemonService = daemon
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        shown = await port.proposal("p-1")
        assert shown.allowed
        assert shown.money is not None
        assert (shown.money.paid_sats, shown.money.fee_sats) == (50_000, 1_000)
        assert bridge.asked == 0
        await port.approve("p-1", shown.digest, frozenset())
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1
        (told,) = platform.signatures("p-1")
        record = daemon.journal.record("p-1")
        assert record.signature is not None
        assert told["psbt"] == base64.b64encode(record.signature.psbt).decode()
        assert told["key"] == record.signature.idempotency_key
        platform.proposals["p-1"] = replace(
            HONEST, status=ProposalStatus.BROADCASTING, txid=HONEST.txid_expected
        )
        await until_state(daemon, "p-1", State.BROADCAST)
        platform.proposals["p-1"] = replace(HONEST, status=ProposalStatus.CONFIRMED, confirmations=6)
        await until_state(daemon, "p-1", State.CONFIRMED)
        assert (await daemon.verify_audit()).fault is None


async def test_nothing_is_signed_without_the_person(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        rounds = daemon.follower.state.rounds
        await until(lambda: daemon.follower.state.rounds > rounds + 3)
        with pytest.raises(StaleApproval):
            await daemon.approve("p-1", "00" * 32)
    assert bridge.asked == 0
    assert platform.told() == []


async def test_a_decline_reaches_the_platform_once(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await daemon.reject("p-1", "not our invoice\x1b[2J")
        await until(lambda: bool(platform.told()))
        rounds = daemon.follower.state.rounds
        await until(lambda: daemon.follower.state.rounds > rounds + 2)
    (told,) = platform.told()
    assert (told["decision"], told["reason"]) == ("reject", "not our invoice·[2J")


async def test_a_decline_waits_for_the_platform_and_survives_a_restart(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    store = MemoryStore()
    platform.before = lambda r: problem(503, "BACKEND_UNAVAILABLE") if "sign-psbt" in r.url.path else None
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await daemon.reject("p-1", "no")
    platform.before = lambda _request: None
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        await until(lambda: bool(platform.told()))


# --- keys and vaults -------------------------------------------------------------------------------------------------


async def test_from_nothing_to_a_pinned_vault(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.REFUSED)
        preview = await daemon.preview_registration()
        assert preview.fingerprint == str(ALICE.fingerprint)
        assert [key.path for key in preview.keys][:2] == ["m/48h/1h/0h/2h", "m/48h/1h/1h/2h"]
        assert len(preview.keys) == 9
        registered = await daemon.register(preview.device_id, preview.digest)
        assert registered.key_id == "key-1"
        assert len(bridge.messages) == 1
        (vault,) = await daemon.vaults()
        assert (vault.threshold, vault.signers, vault.account, vault.pinned) == (2, 3, 0, False)
        assert vault.first_address == VAULT.address(0, 0)
        assert daemon.journal.record("p-1").state is State.REFUSED
        pinned = await daemon.pin(VAULT_ID, VAULT.verification_code.lower().replace("-", " "))
        assert pinned.pinned
        assert pinned.enrolled
        assert bridge.enrolled == [VAULT.verification_code]
        # Pinned in a step of its own: the proposal still waits for its own yes.
        assert daemon.journal.record("p-1").state is State.WAITING_PERSON
        assert bridge.asked == 0


async def test_s15_other_keys_than_those_shown_are_not_registered(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        bridge.signer = MALLORY
        with pytest.raises(RegistrationStale):
            await daemon.register(preview.device_id, preview.digest)
    assert platform.keys == []
    assert bridge.messages == []


@pytest.mark.parametrize(
    "lie",
    [
        {"challenge": "Pay all my bitcoin to Mallory"},
        {"challenge": f"Register signing key network:testnet user:7 nonce:{'ab' * 16} keys:{'00' * 32}"},
        {"derivation_path": "m/48h/1h/0h/2h/0/1"},
    ],
)
async def test_the_device_signs_no_other_text_than_the_challenge(
    state: Path, platform: FakePlatform, bridge: FakeBridge, lie: dict[str, str]
) -> None:
    def lied(request: httpx.Request) -> httpx.Response | None:
        if request.url.path != "/api/v1/key-challenge":
            return None
        honest = {
            "challenge": "x",
            "derivation_path": "m/48h/1h/0h/2h/0/0",
            "expires_at": "2026-01-02T03:04:05Z",
        }
        return httpx.Response(200, json={**honest, **lie})

    platform.after = lied
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        with pytest.raises(PlatformAnswersWrongly):
            await daemon.register(preview.device_id, preview.digest)
    assert bridge.messages == []


async def test_a_registration_cut_off_before_it_was_written_down_is_taken_up(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        daemon.journal._db.execute("DELETE FROM own_keys")
        again = await daemon.register(preview.device_id, preview.digest)
        assert again.key_id == "key-1"
        assert len(daemon.journal.own_keys()) == 9


async def test_another_active_key_is_not_adopted(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        platform.keys[0]["Xpub"]["String"] = str(MALLORY.vault_key().xpub)
        with pytest.raises(PlatformRefused):
            await daemon.register(preview.device_id, preview.digest)
        assert (await daemon.register(preview.device_id, preview.digest, replace=True)).key_id == "key-2"


async def test_s16_a_wrong_code_pins_nothing(state: Path, platform: FakePlatform, bridge: FakeBridge) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        await daemon.vaults()
        with pytest.raises(WrongCode):
            await daemon.pin(VAULT_ID, make_vault(threshold=1).verification_code)
        assert daemon.journal.pins() == ()


async def test_without_a_registered_key_nothing_is_pinned(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        await until(lambda: bool(daemon.journal.claims()))
        with pytest.raises(NoRegisteredKey):
            await daemon.pin(VAULT_ID, VAULT.verification_code)


async def test_s15_a_vault_without_our_key_is_not_pinned(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    platform.vault = make_vault((BOB, MALLORY))
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        await until(lambda: bool(daemon.journal.claims()))
        with pytest.raises(NotOurVault):
            await daemon.pin(VAULT_ID, platform.vault.verification_code)


async def test_s16_a_vault_that_changes_after_pinning_alarms_and_refuses(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        platform.vault = make_vault((ALICE, BOB, MALLORY))
        (vault,) = await daemon.vaults()
        assert "ALARM" in (vault.fault or "")
        assert daemon.journal.record("p-1").state is State.REFUSED
        with pytest.raises(VaultDiffers):
            await daemon.pin(VAULT_ID, platform.vault.verification_code)
        assert any("ALARM" in note for note in (await daemon.status()).notes)


async def test_an_enrolment_that_failed_is_taken_up_by_pinning_again(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    bridge.failures = [RefusedByPerson()]
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        with pytest.raises(Exception, match="refused") as failed:
            await daemon.pin(VAULT_ID, VAULT.verification_code)
        assert failed.value.code == "device-failed"
        assert not (await daemon.vaults())[0].enrolled
        assert (await daemon.pin(VAULT_ID, VAULT.verification_code)).enrolled


# --- the device ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hindered", sorted(set(DeviceState) - {DeviceState.READY}))
async def test_f_a_device_that_cannot_be_asked_is_asked_when_it_is_ready(
    state: Path, platform: FakePlatform, bridge: FakeBridge, hindered: DeviceState
) -> None:
    """Unplugged, locked, with the wrong app, without its passphrase, in another program's hands: the approval waits."""
    prepare(state)
    bridge.state = hindered
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        rounds = daemon.follower.state.rounds
        await until(lambda: daemon.follower.state.rounds > rounds + 2)
        assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
        assert bridge.asked == 0
        bridge.becomes(DeviceState.READY)
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1


async def test_f_s18_another_device_or_passphrase_is_not_asked(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    """Ready, and of other keys: it is as if none were there, until the right one comes."""
    prepare(state)
    bridge.signer = BOB
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        rounds = daemon.follower.state.rounds
        await until(lambda: daemon.follower.state.rounds > rounds + 2)
        assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
        assert bridge.asked == 0
        bridge.signer = ALICE
        bridge.becomes(DeviceState.READY)
        await until_state(daemon, "p-1", State.SUBMITTED)


async def test_a_device_that_locks_at_the_last_moment_keeps_the_approval(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    bridge.failures = [Locked(), Locked()]
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1


@pytest.mark.parametrize("failure", [RefusedByPerson(), Disconnected(), NotEnrolled()], ids=lambda e: e.code)
async def test_a_device_that_gave_nothing_asks_the_person_again(
    state: Path, platform: FakePlatform, bridge: FakeBridge, failure: BridgeError
) -> None:
    prepare(state)
    bridge.failures = [failure]
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.INTERRUPTED)
        assert failure.hint in daemon.journal.record("p-1").reason
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)


async def test_f_a_mistake_in_the_device_library_does_not_end_the_daemon(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    bridge.failures = [RuntimeError("nobody foresaw it")]
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.INTERRUPTED)
        assert bridge.asked == 0
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
    assert len(platform.signatures("p-1")) == 1


async def test_s19_what_the_device_should_not_have_signed_is_not_submitted(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    bridge.alter = lambda _psbt: ALICE.sign(spend(fee=1_001))
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.INTERRUPTED)
    assert platform.told() == []


async def test_two_proposals_go_to_the_device_one_after_the_other(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    platform.proposals["p-2"] = snapshot_of(spend(n_inputs=1), "p-2")
    async with daemon_at(state, platform, bridge) as daemon:
        for psbt_id in ("p-1", "p-2"):
            await until_state(daemon, psbt_id, State.WAITING_PERSON)
        bridge.state = DeviceState.LOCKED
        for psbt_id in ("p-1", "p-2"):
            await approve(daemon, psbt_id)
        bridge.becomes(DeviceState.READY)
        await until_state(daemon, "p-1", State.SUBMITTED)
        # p-2 spends a coin of p-1: approved while that was unsigned, it is asked about once more (S25, S6).
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        assert (await daemon.proposal("p-2")).to_acknowledge == ("conflict",)
        await approve(daemon, "p-2", "conflict")
        await until_state(daemon, "p-2", State.SUBMITTED)
        assert bridge.asked == 2


# --- the platform ----------------------------------------------------------------------------------------------------


def fails_first(
    times: int, answer: Callable[[], httpx.Response]
) -> Callable[[httpx.Request], httpx.Response | None]:
    left = [times]

    def hook(request: httpx.Request) -> httpx.Response | None:
        if request.url.path == "/api/v1/sign-psbt" and left[0]:
            left[0] -= 1
            return answer()
        return None

    return hook


def dropped() -> httpx.Response:
    raise httpx.ReadError("connection dropped")


def too_slow() -> httpx.Response:
    raise httpx.ReadTimeout("no answer in time")


FAULTS = {
    "drops before": (dropped, False),
    "slow before": (too_slow, False),
    "slow after accepting": (too_slow, True),
    "drops after accepting": (dropped, True),
    "500": (lambda: problem(500, "INTERNAL"), False),
    "503": (lambda: problem(503, "BACKEND_UNAVAILABLE"), False),
    "garbage": (lambda: httpx.Response(200, content=b"<html>"), True),
    "401": (lambda: problem(401, "TOKEN_EXPIRED"), False),
    "in flight": (lambda: problem(409, "IDEMPOTENCY_IN_PROGRESS"), False),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_f_whatever_the_platform_does_the_same_bytes_arrive(
    state: Path, platform: FakePlatform, bridge: FakeBridge, name: str
) -> None:
    prepare(state)
    answer, after = FAULTS[name]
    hook = fails_first(6, answer)
    if after:
        platform.after = hook
    else:
        platform.before = hook
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
    told = platform.signatures("p-1")
    assert len({(t["psbt"], t["key"]) for t in told}) == 1
    assert bridge.asked == 1


async def test_a_final_no_is_kept_and_told(state: Path, platform: FakePlatform, bridge: FakeBridge) -> None:
    prepare(state)
    platform.before = lambda r: problem(403, "KEY_REVOKED") if "sign-psbt" in r.url.path else None
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.QUARANTINED)
        assert daemon.journal.record("p-1").signature is not None
        with pytest.raises(IllegalEvent):
            await approve(daemon, "p-1")


async def test_f_an_unreachable_platform_is_said_and_waited_for(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)

        def down(_request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused")

        platform.before = down
        await until(lambda: not daemon.follower.state.reachable)
        assert any("platform" in note for note in (await daemon.status()).notes)
        platform.before = lambda _request: None
        await until(lambda: daemon.follower.state.reachable)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: httpx.Response(200, content=b"<html>captive portal</html>"),
        lambda: httpx.Response(200, json=[{"psbt_id": "p-1"}]),
        lambda: httpx.Response(200, json={"not": "a list"}),
        lambda: httpx.Response(204),
        lambda: httpx.Response(500, content=b"oops"),
    ],
)
async def test_f_garbage_for_a_list_is_said_and_survived(
    state: Path, platform: FakePlatform, bridge: FakeBridge, answer: Callable[[], httpx.Response]
) -> None:
    prepare(state)
    platform.after = lambda r: answer() if r.url.path == "/api/v1/psbt" else None
    async with daemon_at(state, platform, bridge) as daemon:
        await until(lambda: daemon.follower.state.trouble is not None)
        platform.after = lambda _request: None
        await until_state(daemon, "p-1", State.WAITING_PERSON)


@pytest.mark.parametrize("psbt_id", ["../p", "p 1", "p\x1b[2J", "", "x" * 65])
async def test_f_an_id_that_is_none_is_not_taken(
    state: Path, platform: FakePlatform, bridge: FakeBridge, psbt_id: str
) -> None:
    prepare(state)
    platform.proposals = {psbt_id: replace(HONEST, psbt_id=psbt_id)}
    async with daemon_at(state, platform, bridge) as daemon:
        await until(lambda: "id" in (daemon.follower.state.trouble or ""))
        assert daemon.journal.records() == ()


async def test_f_an_unreadable_psbt_is_refused_and_can_be_declined(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    platform.proposals["p-1"] = replace(HONEST, psbt=b"cHNidP8 is no PSBT")
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.REFUSED)
        await daemon.reject("p-1", "unreadable")
        await until(lambda: bool(platform.told()))


async def test_f_1000_pending_proposals(state: Path, platform: FakePlatform, bridge: FakeBridge) -> None:
    prepare(state)
    platform.proposals = {f"p-{n}": snapshot_of(one_coin(n), f"p-{n}") for n in range(1_000)}
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-999", State.WAITING_PERSON, patience=60)
        lines = await daemon.proposals(ended=False)
        assert len(lines) == 1_000
        await approve(daemon, "p-999")
        await until_state(daemon, "p-999", State.SUBMITTED)


def one_coin(salt: int) -> Psbt:
    change = ChangeTo(sats(89_000 - salt), 1, 0)
    return build_psbt(VAULT, [fund(VAULT, 100_000, salt=salt)], [pay(10_000 + salt), change], 0)


async def test_s14_a_workspace_on_another_network_is_not_followed(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    platform.workspace_network = "mainnet"
    async with daemon_at(state, platform, bridge) as daemon:
        await until(lambda: daemon.follower.state.reachable)
        assert daemon.follower.state.workspaces == ()
        assert ("GET", "/api/v1/psbt") not in platform.requests


async def test_s24_an_altered_proposal_is_quarantined_and_alarmed(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        digest = (await daemon.proposal("p-1")).digest
        platform.proposals["p-1"] = snapshot_of(spend(fee=1_001))
        await until_state(daemon, "p-1", State.QUARANTINED)
        with pytest.raises(IllegalEvent):
            await daemon.approve("p-1", digest)
        assert any(line.kind == "alarm" for line in daemon.feed.since(0, "p-1"))


# --- the session -----------------------------------------------------------------------------------------------------


async def test_signing_in_with_a_mailed_code(state: Path, platform: FakePlatform, bridge: FakeBridge) -> None:
    platform.two_factor = True
    async with daemon_at(state, platform, bridge, sign_in=False) as daemon:
        with pytest.raises(SignInFailed):
            await daemon.sign_in(EMAIL, "wrong password")
        first = await daemon.sign_in(EMAIL, PASSWORD)
        assert first.code_needed
        assert not (await daemon.status()).signed_in
        with pytest.raises(SignInFailed):
            await daemon.confirm_sign_in("000000")
        with pytest.raises(SignInFailed):
            await daemon.confirm_sign_in("not a code")
        await daemon.confirm_sign_in(OTP)
        await until(lambda: daemon.follower.state.reachable)
        assert (await daemon.status()).email == EMAIL


async def test_nobody_signed_in_is_said(state: Path, platform: FakePlatform, bridge: FakeBridge) -> None:
    async with daemon_at(state, platform, bridge, sign_in=False) as daemon:
        preview = await daemon.preview_registration()
        with pytest.raises(SignedOut):
            await daemon.register(preview.device_id, preview.digest)
        assert any("login" in note for note in (await daemon.status()).notes)


async def test_the_session_survives_a_restart_and_an_expired_token(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        platform.token = "another"  # The platform no longer takes the access token.
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
        await until(lambda: platform.refresh_token in (store.kept or ""))
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        await until(lambda: daemon.follower.state.reachable)
    assert platform.logins == 1


async def test_f_a_keyring_that_locks_later_costs_only_a_note(
    state: Path, platform: FakePlatform, bridge: FakeBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(state)
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        locked = [True]
        save = store.save

        def sometimes(secret: str) -> None:
            if locked[0]:
                raise KeyringTimedOut("the keyring did not answer in 60 seconds")
            save(secret)

        monkeypatch.setattr(store, "save", sometimes)
        platform.token = "another"
        await until(lambda: daemon.account.trouble is not None)
        assert any("cannot be stored" in note for note in (await daemon.status()).notes)
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        locked[0] = False
        await until(lambda: daemon.account.trouble is None)
        assert platform.refresh_token in (store.kept or "")


async def test_signing_out_forgets_the_session(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        assert store.kept is not None
        await daemon.sign_out()
        assert store.kept is None
        assert not (await daemon.status()).signed_in


async def test_a_refresh_token_never_goes_to_another_address(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store):
        pass
    elsewhere = make_config(platform={"url": "http://127.0.0.1:2", "long_poll_seconds": 0})
    async with daemon_at(state, platform, bridge, store=store, config=elsewhere, sign_in=False) as daemon:
        assert not (await daemon.status()).signed_in


# --- stopping --------------------------------------------------------------------------------------------------------


async def test_f_a_journal_that_cannot_be_written_stops_the_daemon(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    platform.proposals.clear()
    with pytest.raises(JournalUnwritable):  # noqa: PT012 - it is raised by the context's end
        async with daemon_at(state, platform, bridge) as daemon:
            pages = daemon.journal._db.execute("PRAGMA page_count").fetchone()[0]
            daemon.journal._db.execute(f"PRAGMA max_page_count = {pages}")
            platform.proposals["p-1"] = snapshot_of(spend(n_inputs=100))
            await until(daemon.task.done)
    assert bridge.asked == 0


async def test_a_held_folder_is_free_after_a_stop(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge):
        pass
    StateFolder.hold(state).release()


async def test_the_stored_signature_is_the_submitted_one(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    prepare(state)
    async with daemon_at(state, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
    (told,) = platform.signatures("p-1")
    signed = Psbt.parse(told["psbt"])
    assert all(len(item.partial_signatures) == 1 for item in signed.inputs)
    assert signed.tx == Psbt.parse(HONEST.psbt).tx


async def test_a_failed_sign_in_as_somebody_else_does_not_rename_who_is_signed_in(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge) as daemon:
        await until(daemon.account.signed_in.is_set)
        with pytest.raises(SignInFailed):
            await daemon.sign_in("mallory@example.org", "wrong password")
        assert daemon.account.email == EMAIL


class TwoOfOneSeed(FakeBridge):
    """The second device holds the same seed, and stays ready while the first one works."""

    async def list(self) -> tuple[Device, ...]:
        other = replace(self.device, id="copy")
        return (other,) if self.asked else (self.device, other)


async def test_s6_two_devices_of_one_seed_do_not_pay_twice_at_once(state: Path, tmp_path: Path) -> None:
    prepare(state)
    psbts = [
        build_psbt(
            VAULT,
            [fund(VAULT, 100_000, index=n, salt=n)],
            [pay(50_000), ChangeTo(sats(49_000), 1, n)],
            locktime=0,
        )
        for n in (1, 2)
    ]
    platform = FakePlatform(tmp_path, {f"p-{n}": snapshot_of(psbt, f"p-{n}") for n, psbt in enumerate(psbts)})
    bridge = TwoOfOneSeed(gate=asyncio.Event())
    async with daemon_at(state, platform, bridge) as daemon:
        for psbt_id in platform.proposals:
            await until_state(daemon, psbt_id, State.WAITING_PERSON)
        for psbt_id in platform.proposals:
            await daemon.approve(psbt_id, (await daemon.proposal(psbt_id)).digest)
        await until(lambda: bridge.asked > 0)
        bridge.becomes(DeviceState.READY)
        rounds = daemon.follower.state.rounds
        await until(lambda: daemon.follower.state.rounds > rounds + 3)
        assert bridge.asked == 1
        assert bridge.gate is not None
        bridge.gate.set()
        await until(lambda: len(daemon.journal.records([State.WAITING_PERSON])) == 1)
        assert bridge.asked == 1
        (held,) = daemon.journal.records([State.WAITING_PERSON])
        assert (await daemon.proposal(held.psbt_id)).to_acknowledge == ("paid-twice",)
