"""A key that the platform says is revoked: told, not signed with, and nothing is taken away on the platform's
word.
"""

from typing import Any

import pytest

from firmware_bridge import DeviceState
from signerd.core.states import State
from signerd.daemon import vaults
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
from tests.support.fake_platform import listed_key, problem
from tests.support.wallets import ALICE, MALLORY, Signer

pytestmark = pytest.mark.anyio
KEYS = ("GET", "/api/v1/keys")


def key(number: int, signer: Signer, status: str = "active") -> dict[str, Any]:
    own = signer.vault_key()
    return listed_key(
        f"key-{number}", str(own.xpub), str(own.fingerprint), str(own.origin.path), status=status
    )


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
        assert any(words in note and "signerd register" in note for note in (await daemon.status()).notes)
        assert [words in text for text in told(daemon, "registration", "alarm")] == [True]
        (device,) = await daemon.devices()
        assert "revoked" in (device.detail or "")
        (vault,) = await vaults.vaults(daemon)
        assert vault.pinned
        assert (await daemon.verify_audit()).fault is None
    assert bridge.asked == 0
    assert platform.told() == []


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
