"""Profiles: watched from their registration on, one member's each, and shown to that member alone."""

import pytest
from sqlalchemy import select

from custody.schemas.keys import RevokeKeyRequest
from custody.server.calls import In, context_in
from custody.server.keys.revocation import revoke_key
from custody.server.rules.credentials import OPERATOR
from custody.server.store.models import WatchedScriptRow
from multisig import Network
from tests.support.custody import SIGNERS, Desk, ok, refused
from tests.support.platform import As, World, key_offer, open_world, register_key, seed
from tests.support.profiles import PATH, figures, profile_of

OLGA = "olga@example.org"


def watched(world: World) -> list[tuple[str, int, int]]:
    query = select(WatchedScriptRow).where(WatchedScriptRow.vault_id.is_(None))
    with world.platform.services.store.read() as db:
        return sorted((row.chain, row.branch, row.address_index) for row in db.scalars(query))


class TestWatching:
    def test_of_a_network_without_a_workspace_it_begins_when_one_is_founded(self, tmp_path) -> None:
        with open_world(tmp_path / "state") as world:
            world.organisation("Acme", "alice@example.org")
            alice = world.as_user("alice@example.org")
            ok(register_key(alice, seed(1), Network.MAINNET))
            assert watched(world) == []
            refused(alice.get(PATH, network="mainnet"), 404, "NOT_FOUND")
            world.organisation("Umbrella", OLGA, Network.MAINNET)
            assert watched(world) == [("mainnet", 0, 0), ("mainnet", 1, 0)]
            shown = ok(alice.get(PATH, network="mainnet"))
            assert shown["wallet_address"].startswith("bc1q")

    def test_each_is_watched_at_two_places_and_by_no_second_workspace_again(self, desk: Desk) -> None:
        before = watched(desk.world)
        assert before == [("regtest", 0, 0)] * 3 + [("regtest", 1, 0)] * 3
        desk.world.organisation("Umbrella", "eve@example.com")
        assert watched(desk.world) == before


class TestWhose:
    @pytest.fixture
    def mallory(self, desk: Desk) -> As:
        desk.world.organisation("Umbrella", "mallory@example.com")
        return desk.world.as_user("mallory@example.com")

    def test_another_persons_profile_is_refused(self, desk: Desk, mallory: As) -> None:
        stolen = key_offer(seed(1))["profile"]
        refused(register_key(mallory, seed(9), profile=stolen), 409, "STATE_CONFLICT")
        assert ok(mallory.get("/api/v1/keys")) == []
        # Nor by a later registration of the same device.
        ok(register_key(mallory, seed(9), profile=None))
        refused(register_key(mallory, seed(9), profile=stolen), 409, "STATE_CONFLICT")
        refused(mallory.get(PATH, network="testnet"), 404, "NOT_FOUND")
        desk.deposit(70_000, to=profile_of(desk.signers["alice"])["wallet_address"])
        assert figures(desk.signers["alice"]) == (70_000, 0, 0)
        ok(register_key(desk.signers["alice"], seed(7), replace=True))
        refused(register_key(mallory, seed(9), profile=stolen), 409, "STATE_CONFLICT")

    def test_an_operator_takes_keys_from_a_person_who_is_not_their_owner(
        self, desk: Desk, mallory: As
    ) -> None:
        """S36: the proof covers account 0 alone; a key that is marked lost holds no other."""
        doras = key_offer(seed(8))
        squatted = ok(
            register_key(
                mallory, seed(9), profile=doras["profile"], vault_accounts=doras["vault_accounts"][1:]
            )
        )
        desk.world.member(desk.workspace_id, "dora@example.org")
        dora = desk.world.as_user("dora@example.org")
        refused(register_key(dora, seed(8)), 409, "STATE_CONFLICT")
        services = desk.world.platform.services
        with context_in(services, OPERATOR, In.WRITE) as ctx:
            revoke_key(ctx, RevokeKeyRequest(key_id=squatted["ID"], reason="lost"))
        assert ok(register_key(dora, seed(8)))["FreeVaultAccounts"] == len(doras["vault_accounts"])
        desk.deposit(70_000, to=profile_of(dora)["wallet_address"])
        assert figures(dora) == (70_000, 0, 0)

    def test_one_device_registered_again_keeps_its_money(self, desk: Desk) -> None:
        alice = desk.signers["alice"]
        first = profile_of(alice)
        desk.deposit(70_000, to=first["wallet_address"])
        ok(
            alice.post(
                "/api/v1/revoke-key", {"key_id": first["key_id"], "reason": "superseded", "force": True}
            )
        )
        refused(alice.get(PATH, network="testnet"), 404, "NOT_FOUND")
        assert figures(alice, key_id=first["key_id"]) == (70_000, 0, 0)
        ok(register_key(alice, desk.devices["alice"]))
        again = profile_of(alice)
        assert again["key_id"] != first["key_id"]
        assert again["wallet_address"] == first["wallet_address"]
        assert figures(alice) == (70_000, 0, 0)

    def test_a_superseded_keys_profile_is_shown_by_the_keys_id(self, desk: Desk) -> None:
        alice = desk.signers["alice"]
        old = profile_of(alice)
        desk.deposit(70_000, to=old["wallet_address"])
        ok(register_key(alice, seed(7), replace=True))
        assert figures(alice) == (0, 0, 0)
        assert figures(alice, key_id=old["key_id"]) == (70_000, 0, 0)
        assert profile_of(alice, key_id=old["key_id"])["wallet_address"] == old["wallet_address"]

    def test_another_members_profile_is_not_shown(self, desk: Desk, mallory: As) -> None:
        """P24."""
        for name in SIGNERS:
            key_id = profile_of(desk.signers[name])["key_id"]
            refused(mallory.get(PATH, network="testnet", key_id=key_id), 404, "NOT_FOUND")
