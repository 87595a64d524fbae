"""Being signed in: by a mailed code, across restarts, and no longer."""

import pytest

from signerd.core.states import State
from signerd.errors import KeyringTimedOut, SignedOut, SignInFailed
from tests.support.daemons import MemoryStore, daemon_at, make_config, submits, until, until_state
from tests.support.fake_platform import EMAIL, OTP, PASSWORD

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
        await until(lambda: daemon.follower.state.reachable)
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
        await until(lambda: daemon.follower.state.reachable)
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
