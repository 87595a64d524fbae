"""What stops a vault, and a row that cannot be shown, beside the others in a person's terminal."""

from sqlalchemy import update

from custody.common.terminal import Exit
from custody.server.store.models import KeyRow, VaultRow
from tests.support.custody import ok


def change(desk, what):
    with desk.world.platform.services.store.write() as db:
        db.execute(what)


def test_what_stops_a_vault_is_in_the_list_and_on_its_page(desk, service):
    assert "STOPPED" in service("vault", "list").stdout
    of_alice = update(KeyRow).where(KeyRow.user_id.in_([desk.user_ids[name] for name in ("alice", "bob")]))
    change(desk, of_alice.values(status="revoked", revoked_reason="lost"))
    change(desk, update(VaultRow).values(frozen_at=desk.world.clock(), frozen_by=1))
    (line,) = [each for each in service("vault", "list").stdout.splitlines() if "Treasury" in each]
    assert line.endswith("frozen, too few signers")
    shown = service("vault", "show", "Treasury").stdout
    assert (
        "Frozen:     nothing is proposed, signed or sent until two people run custody vault unfreeze."
        in shown
    )
    assert "Stopped:    fewer than 2 of its signers can sign a payment" in shown
    assert shown.count("(key lost)") == 2
    assert "frozen, too few signers" in service("limit", "list").stdout
    change(desk, update(VaultRow).values(frozen_at=None, frozen_by=None))
    change(desk, of_alice.values(status="active", revoked_reason=None))


def test_p102_an_altered_vault_is_named_and_the_others_are_listed(desk, service):
    made = ok(desk.create_vault("Other"))
    change(desk, update(VaultRow).where(VaultRow.id == made["id"]).values(cycle_day=99))
    done = service("vault", "list")
    assert done.exit_code == Exit.OK
    assert "Treasury" in done.stdout
    assert f"Not shown: id {made['id']}. What is stored of it cannot be read" in done.stderr
