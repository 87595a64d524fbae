"""A device's keys: exactly those that were shown, proven by the device, registered once."""

import json

import httpx
import pytest

from custody.schemas.keys import ChallengeLine, signed_host
from signerd.account.platform import PlatformClient
from signerd.account.registration import AGAIN_HINT
from signerd.errors import PlatformAnswersWrongly, PlatformRefused, RegistrationStale
from tests.support.daemons import URL, daemon_at
from tests.support.fake_platform import USER_ID, problem
from tests.support.platform import open_world
from tests.support.wallets import MALLORY

pytestmark = pytest.mark.anyio
HOST = signed_host(URL)
JSON = {"Content-Type": "application/json"}


async def test_s15_other_keys_than_those_shown_are_not_registered(state, platform, bridge):
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
        {"challenge": str(ChallengeLine(HOST, "testnet", 7, "ab" * 16, "00" * 32))},
        {"derivation_path": "m/48h/1h/0h/2h/0/1"},
    ],
)
async def test_the_device_signs_no_other_text_than_the_challenge(state, platform, bridge, lie):
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
