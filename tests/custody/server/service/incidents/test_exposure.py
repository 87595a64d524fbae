"""Which vaults an advisory exposes, by how many keys, in which order."""

from sqlalchemy import update

from custody.advisories import Advisory
from custody.server.service.incidents.exposure import Exposure, exposures
from custody.server.store.models import Key
from tests.support.advisories import affected, entry
from tests.support.custody import ok
from tests.support.platform import key_offer, register_key

COLDCARD = {"maker": "coldcard", "model": "Coldcard", "firmware": "5.5.0"}
TREZOR = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}


def know(desk, **devices: dict) -> None:
    """As if the signers' machines had said so at the registration."""
    with desk.world.platform.services.store.write() as db:
        for name, device in devices.items():
            db.execute(update(Key).where(Key.user_id == desk.user_ids[name]).values(**device))


def exposed(desk, said: dict, organisation_id: int = 1) -> list[Exposure]:
    with desk.world.platform.services.store.read() as db:
        return exposures(db, organisation_id, Advisory.model_validate(said))


def test_exposed_keys_are_counted_and_what_is_unknown_counts(desk):
    know(desk, alice=COLDCARD, bob=TREZOR)
    (found,) = exposed(desk, entry())
    assert (found.name, found.exposed_keys, found.required, found.total) == ("Treasury", 2, 2, 3)
    told = {key.user_id: key.concern for key in found.keys}
    assert told == {desk.user_ids["alice"]: "exposed", desk.user_ids["carol"]: "unknown"}
    know(desk, carol=TREZOR, alice=TREZOR)
    assert exposed(desk, entry()) == []
    assert len(exposed(desk, entry("TREZOR-1", affected("trezor")))) == 1


def test_those_that_the_exposed_keys_alone_move_come_first_then_the_largest(desk):
    know(desk, alice=COLDCARD, bob=COLDCARD, carol=TREZOR)
    for name, device in desk.devices.items():
        more = key_offer(device, accounts=4)["vault_accounts"]
        ok(register_key(desk.signers[name], device, vault_accounts=more))
    ok(desk.create_vault("All three", m=3))
    ok(desk.create_vault("Small"))
    ok(desk.create_vault("Empty"))
    addresses = {vault["name"]: vault["receive_address"] for vault in desk.wallets()}
    for name, amount in (("All three", 900_000), ("Small", 10_000), ("Treasury", 50_000)):
        desk.deposit(amount, blocks=0 if name == "Small" else 1, to=addresses[name])
    found = exposed(desk, entry())
    assert [each.name for each in found] == ["Treasury", "Small", "Empty", "All three"]
    assert [each.amount_sats for each in found] == [50_000, 10_000, 0, 900_000]
    assert [each.keys_to_spare for each in found] == [0, 0, 0, 1]


def test_p88_a_drill_never_sees_a_vault_of_mainnet(desk):
    assert len(exposed(desk, entry(drill=True))) == 1
    with desk.world.platform.services.store.write() as db:
        db.execute(update(Key).values(network="mainnet"))
    assert exposed(desk, entry(drill=True)) == []
    assert len(exposed(desk, entry())) == 1


def test_another_organisations_vaults_are_not_seen(desk):
    assert exposed(desk, entry(), organisation_id=2) == []
