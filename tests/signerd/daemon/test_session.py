"""Being signed in: by a mailed code, across restarts, and no longer. What a daemon is put together from on
its state folder, and how a damaged journal ends it.
"""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from firmware_bridge import Registration, RegistrationFile
from signerd.app import REGISTRATIONS_FILE
from signerd.core.states import State
from signerd.daemon import service
from signerd.errors import JournalCorrupted, KeyringTimedOut, RegistrationsUnreadable, SignedOut, SignInFailed
from signerd.journal.storage import JOURNAL
from tests.support.daemons import MemoryStore, approve, daemon_at, make_config, submits, until, until_state
from tests.support.desk import VAULT
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, OTP, PASSWORD, FakePlatform
from tests.support.wallets import ALICE

pytestmark = pytest.mark.anyio


async def test_signing_in_with_a_mailed_code(state, platform, bridge):
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
        await until(lambda: daemon.follower.reachable)
        assert (await daemon.status()).email == EMAIL


async def test_a_missing_sign_in_is_reported(state, platform, bridge):
    async with daemon_at(state, platform, bridge, sign_in=False) as daemon:
        preview = await daemon.preview_registration()
        with pytest.raises(SignedOut):
            await daemon.register(preview.device_id, preview.digest)
        assert any("login" in note for note in (await daemon.status()).notes)


async def test_a_failed_sign_in_with_another_account_keeps_the_account(state, platform, bridge):
    async with daemon_at(state, platform, bridge) as daemon:
        await until(daemon.account.signed_in.is_set)
        with pytest.raises(SignInFailed):
            await daemon.sign_in("mallory@example.org", "wrong password")
        assert daemon.account.email == EMAIL


async def test_the_session_survives_a_restart_and_an_expired_token(prepared, platform, bridge):
    store = MemoryStore()
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        platform.token = "another"  # The platform no longer takes the access token.
        await submits(daemon, "p-1")
        await until(lambda: platform.refresh_token in (store.kept or ""))
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await until(lambda: daemon.follower.reachable)
    assert platform.logins == 1


async def test_f_a_keyring_that_locks_later_costs_only_a_note(prepared, platform, bridge, monkeypatch):
    store = MemoryStore()
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
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


async def test_signing_out_forgets_the_session(state, platform, bridge):
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store) as daemon:
        assert store.kept is not None
        await daemon.sign_out()
        assert store.kept is None
        assert not (await daemon.status()).signed_in


async def test_a_refresh_token_never_goes_to_another_address(state, platform, bridge):
    store = MemoryStore()
    async with daemon_at(state, platform, bridge, store=store):
        pass
    elsewhere = make_config(platform={"url": "http://127.0.0.1:2", "long_poll_seconds": 0})
    async with daemon_at(state, platform, bridge, store=store, config=elsewhere, sign_in=False) as daemon:
        assert not (await daemon.status()).signed_in


async def test_s34_damage_that_a_start_does_not_look_for_stops_the_daemon_before_a_device_is_asked(
    prepared: Path, platform: FakePlatform, bridge: FakeBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
    # What another program wrote: of the chain a start looks at what came since the last check only.
    with closing(sqlite3.connect(prepared / JOURNAL)) as journal, journal:
        journal.execute("DROP TRIGGER audit_stays")
        journal.execute("UPDATE audit SET subject = 'another' WHERE sequence = 1")
    looks, real = threading.Event(), service.check_whole

    def late(*given: object) -> str | None:
        assert looks.wait(60)
        return real(*given)

    monkeypatch.setattr(service, "check_whole", late)
    # The first start checked everything, for there was no journal before; this one need not.
    with pytest.raises(JournalCorrupted, match="entry 1 was changed"):  # noqa: PT012 - by the context's end
        async with daemon_at(prepared, platform, bridge) as daemon:
            await until_state(daemon, "p-1", State.WAITING_PERSON)
            await approve(daemon, "p-1")
            await daemon.status()
            assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
            looks.set()
            await until(daemon.task.done)
    assert bridge.asked == 0
    with pytest.raises(JournalCorrupted, match="set aside"):
        async with daemon_at(prepared, platform, bridge):
            pass


async def starts_and_stops(state, platform):
    """With the bridge that it makes itself."""
    async with daemon_at(state, platform, None, sign_in=False):
        pass


async def test_what_ledgers_registered_outlives_the_daemon(state, platform):
    await starts_and_stops(state, platform)
    kept = Registration(ALICE.fingerprint, VAULT.verification_code, "Savings", b"\x01" * 32)
    RegistrationFile.open(state / REGISTRATIONS_FILE).keep(kept)
    before = (state / REGISTRATIONS_FILE).read_bytes()
    await starts_and_stops(state, platform)
    assert (state / REGISTRATIONS_FILE).read_bytes() == before


async def test_registrations_that_cannot_be_read_are_told_and_kept(state, platform):
    await starts_and_stops(state, platform)
    (state / REGISTRATIONS_FILE).write_text("{")
    with pytest.raises(RegistrationsUnreadable, match="holds no registrations"):
        await starts_and_stops(state, platform)
    assert (state / REGISTRATIONS_FILE).read_text() == "{"
