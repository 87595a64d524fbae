"""A device's keys: exactly those that were shown, proven by the device, registered once. One that the
platform says is revoked: told, not signed with, and nothing is taken away on the platform's word.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.common import MAX_INT64
from custody.schemas.keys import ChallengeLine, offered_digest
from firmware_bridge import DeviceState
from signerd.account.platform import PlatformClient
from signerd.account.registration import AGAIN_HINT, Offer, require_challenge
from signerd.core.states import State
from signerd.daemon import vaults
from signerd.daemon.funds import vault_funds
from signerd.errors import KeyLost, PlatformAnswersWrongly, PlatformRefused, RegistrationStale
from tests.support.daemons import (
    MemoryStore,
    approve,
    daemon_at,
    some_rounds,
    submits,
    told,
    until,
    until_state,
)
from tests.support.desk import NETWORK
from tests.support.fake_platform import USER_ID, listed_key, problem, text
from tests.support.platform import open_world
from tests.support.wallets import ALICE, MALLORY, Signer

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}


async def test_s15_other_keys_than_those_shown_are_not_registered(state, platform, bridge):
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        bridge.signer = MALLORY
        with pytest.raises(RegistrationStale):
            await daemon.register(preview.device_id, preview.digest)
    assert platform.keys == []
    assert bridge.messages == []


# Of each other: by one letter, the port, the end, and how an internationalised name is written.
HOSTS = (
    "custody.example",
    "custody.example:8443",
    "custody.example.evil.example",
    "cust0dy.example",
    "xn--bcher-kva.example",
    "localhost",
)


def altered(offer: Offer) -> Iterator[Offer]:
    """The offer, with one key that another device or account has in its place, one less or one more."""
    keys = offer.vault_keys
    more = ALICE.vault_key(offer.network, len(keys))
    for nth, own in enumerate(keys):
        for xpub in (MALLORY.vault_key(offer.network, nth).xpub, more.xpub):
            yield replace(offer, vault_keys=(*keys[:nth], replace(own, xpub=xpub), *keys[nth + 1 :]))
        yield replace(offer, vault_keys=(*keys[:nth], *keys[nth + 1 :]))
    yield replace(offer, vault_keys=(*keys, more))
    yield replace(offer, profile=MALLORY.profile().key)
    yield replace(offer, profile=replace(offer.profile, xpub=more.xpub))


@given(st.permutations(HOSTS), st.integers(1, 5), st.integers(1, MAX_INT64), st.integers(1, MAX_INT64))
def test_s36_the_line_that_is_signed_is_this_platforms_for_exactly_these_keys(hosts, count, user, another):
    here, *elsewhere = hosts
    keys = tuple(ALICE.vault_key(NETWORK, account) for account in range(count))
    offer = Offer(NETWORK, keys, ALICE.profile().key)
    line = ChallengeLine(here, NETWORK.api_name, user, "ab" * 16, offered_digest(offer.pairs()))
    require_challenge(str(line), offer, user, here)
    others = [replace(line, host=host) for host in elsewhere]
    others += [replace(line, keys_digest=offered_digest(each.pairs())) for each in altered(offer)]
    others.append(replace(line, network="mainnet"))
    others += [replace(line, user_id=another)] * (another != user)
    for other in ("Pay all my bitcoin to Mallory", f"{line} ", *map(str, others)):
        with pytest.raises(PlatformAnswersWrongly):
            require_challenge(other, offer, user, here)


async def test_the_device_signs_at_the_offers_path_alone(state, platform, bridge):
    def lied(request: httpx.Request) -> httpx.Response | None:
        if request.url.path != "/api/v1/key-challenge":
            return None
        told = platform._challenge(request, json.loads(request.content))
        return httpx.Response(200, json=told | {"derivation_path": "m/48h/1h/0h/2h/0/1"})

    platform.after = lied
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        with pytest.raises(PlatformAnswersWrongly, match="signature at m/48h/1h/0h/2h/0/1"):
            await daemon.register(preview.device_id, preview.digest)
    assert bridge.messages == []


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_s36_a_challenge_that_is_passed_on_from_another_platform_is_not_signed(
    state, platform, bridge, tmp_path, monkeypatch, is_guarded
):
    """Unguarded, Mallory holds Alice's key at the honest platform, under her own account."""
    if not is_guarded:
        monkeypatch.setattr(PlatformClient, "host", "custody.honest.example")
    with open_world(tmp_path / "honest", public_url="https://Custody.Honest.Example") as honest:
        place = honest.organisation("Honest", "admin@example.org")
        # Mallory gives Alice the number that she has there herself.
        for number in range(2, USER_ID + 1):
            honest.member(place.workspace_id, f"mallory{number}@example.org")
        mallory = honest.as_user(f"mallory{USER_ID}@example.org")

        def pass_on(request: httpx.Request) -> httpx.Response | None:
            if request.url.path not in {"/api/v1/key-challenge", "/api/v1/register-key"}:
                return None
            answer = mallory.post(request.url.path, json.loads(request.content))
            return httpx.Response(answer.status_code, content=answer.content, headers=JSON)

        platform.before = pass_on
        async with daemon_at(state, platform, bridge) as daemon:
            preview = await daemon.preview_registration()
            if is_guarded:
                with pytest.raises(PlatformAnswersWrongly, match=r"at custody\.honest\.example, and it is"):
                    await daemon.register(preview.device_id, preview.digest)
            else:
                await daemon.register(preview.device_id, preview.digest)
        assert len(bridge.messages) == (0 if is_guarded else 1)
        assert len(mallory.get("/api/v1/keys").json()) == (0 if is_guarded else 1)


async def test_who_answered_the_device_too_late_is_told_to_begin_again(state, platform, bridge):
    """The platform's line has an end, and a person at a device may have gone for a walk."""
    platform.before = lambda request: (
        problem(422, "VALIDATION", "The challenge is unknown, was used, or has expired.")
        if request.url.path == "/api/v1/register-key"
        else None
    )
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        with pytest.raises(PlatformRefused, match="has expired") as refused:
            await daemon.register(preview.device_id, preview.digest)
    assert refused.value.hint == AGAIN_HINT


async def test_another_active_key_is_not_adopted(state, platform, bridge):
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        platform.keys[0]["Xpub"]["String"] = str(MALLORY.vault_key().xpub)
        with pytest.raises(PlatformRefused):
            await daemon.register(preview.device_id, preview.digest)


KEYS = ("GET", "/api/v1/keys")


def key(number: int, signer: Signer, status: str = "active", reason: str = "") -> dict[str, Any]:
    own = signer.vault_key()
    place = str(own.xpub), str(own.fingerprint), str(own.origin.path)
    return listed_key(f"key-{number}", *place, status=status) | {"RevokedReason": text(reason)}


REPLACED = [key(1, ALICE, "revoked"), key(2, MALLORY)]
MARKED_LOST = [key(1, ALICE, "revoked")]


@pytest.mark.parametrize(
    ("keys", "words"),
    [(REPLACED, "from another desktop"), (MARKED_LOST, "marked lost")],
    ids=["replaced", "lost"],
)
async def test_it_is_read_at_sign_in_and_stops_what_waits_for_the_device(
    prepared, platform, bridge, keys, words
):
    bridge.state = DeviceState.LOCKED
    store = MemoryStore()
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.WAITING_DEVICE)
    platform.keys = keys
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await until_state(daemon, "p-1", State.REFUSED)
        bridge.becomes(DeviceState.READY)
        await some_rounds(daemon)
        assert words in daemon.journal.record("p-1").reason
        assert (await daemon.proposal("p-1")).title.startswith("Pay ")
        assert any(words in note and "signerd register" in note for note in (await daemon.status()).notes)
        assert [words in text for text in told(daemon, "registration", "alarm")] == [True]
        (device,) = await daemon.devices()
        assert "revoked" in (device.detail or "")
        (vault,) = await vaults.vaults(daemon)
        assert vault.pinned
        assert (await daemon.verify_audit()).fault is None
    assert bridge.asked == 0
    assert platform.told() == []


@pytest.mark.parametrize("lost_first", [True, False])
async def test_a_lost_key_is_not_registered_again_and_its_vault_is_shown_as_that_of_one(
    prepared, platform, bridge, lost_first
):
    """Whether it was marked lost before another device was registered, or after."""
    lost = key(1, ALICE, "revoked", "lost")
    platform.keys = [lost if lost_first else key(1, ALICE)]

    async def alarmed(daemon):
        daemon.keys.due.set()
        await until(lambda: any("marked lost" in line for line in told(daemon, "registration", "alarm")))
        (vault,) = await vaults.vaults(daemon)
        assert vault.fault == (await vault_funds(daemon, vault.vault_id)).fault
        assert "marked lost" in vault.fault
        assert any("emergency kit" in note for note in (await daemon.status()).notes)

    async with daemon_at(prepared, platform, bridge) as daemon:
        if lost_first:
            await alarmed(daemon)
        bridge.signer = platform.signer = MALLORY
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest, replace=True)
        platform.keys[0] = lost
        await alarmed(daemon)
        bridge.signer, asked = ALICE, len(bridge.messages)
        preview = await daemon.preview_registration()
        with pytest.raises(KeyLost):
            await daemon.register(preview.device_id, preview.digest, replace=True)
        assert len(bridge.messages) == asked
        (vault,) = await vaults.vaults(daemon)
        assert "replaced" not in vault.fault
        assert (vault.enrolled, vault.address_shown) == (False, False)


async def test_a_signature_turned_down_for_the_key_has_the_keys_read_at_once(daemon, platform):
    platform.before = lambda r: problem(403, "KEY_REVOKED") if "sign-psbt" in r.url.path else None
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    await until(lambda: daemon.keys.reads > 0 and not daemon.keys.due.is_set())
    platform.keys = REPLACED
    await approve(daemon, "p-1")
    await until_state(daemon, "p-1", State.QUARANTINED)
    await until(lambda: bool(told(daemon, "registration", "alarm")))


async def test_it_is_read_now_and_then_and_not_with_every_list(daemon, platform):
    await until(lambda: daemon.keys.reads > 0 and not daemon.keys.due.is_set())
    asked = platform.requests.count(KEYS)
    await some_rounds(daemon, 5)
    assert platform.requests.count(KEYS) == asked <= 2
    daemon.keys.every = 0.001
    daemon.keys.due.set()
    await until(lambda: platform.requests.count(KEYS) > asked + 2)


async def test_f_a_platform_that_cannot_say_is_asked_again(prepared, platform, bridge):
    # A key of another kind beside ours hides nothing.
    platform.keys = [{**key(3, MALLORY), "Status": "on-hold"}, *MARKED_LOST]
    platform.before = lambda r: problem(500, "INTERNAL") if r.url.path == KEYS[1] else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until(lambda: platform.requests.count(KEYS) > 5)
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        platform.before = lambda _request: None
        await until_state(daemon, "p-1", State.REFUSED)
        assert len(told(daemon, "registration", "alarm")) == 1


async def test_a_platform_that_takes_its_word_back_lifts_nothing_and_a_registration_does(
    prepared, platform, bridge
):
    platform.keys = MARKED_LOST
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.REFUSED)
        platform.keys = [key(1, ALICE)]
        reads = daemon.keys.reads
        daemon.keys.due.set()
        await until(lambda: daemon.keys.reads > reads)
        assert daemon.journal.record("p-1").state is State.REFUSED
        preview = await daemon.preview_registration()
        assert (await daemon.register(preview.device_id, preview.digest)).key_id == "key-1"
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert not any("revoked" in note for note in (await daemon.status()).notes)
        await submits(daemon, "p-1")
