"""Treasurers' commands for a payment under way and for a member who leaves; what stops a vault, and a row
that cannot be shown, beside the others.
"""

import json

from sqlalchemy import update

from custody.common.terminal import Exit
from custody.server.store.models import KeyRow, ProposalRow, VaultRow
from tests.support.custody import SHOP, ok
from tests.support.replacing import finished, made, status
from tests.support.sdk import sdk


def proposed(desk, **changes) -> str:
    return made(desk.propose(100_000, recipients=[SHOP], fee_rate="2", **changes))


def test_a_payment_is_bumped(desk, service):
    psbt_id = proposed(desk)
    known = len(desk.rows(ProposalRow))
    refused = service("proposal", "bump", psbt_id[:8], "--fee-rate", "9", answers="n\n")
    assert (refused.exit_code, len(desk.rows(ProposalRow))) == (Exit.DECLINED, known)
    assert "The new one's fee: " in refused.stderr
    done = service("proposal", "bump", psbt_id[:8], "--fee-rate", "9", "--json", answers="y\n")
    assert done.exit_code == Exit.OK, done.output
    newer = json.loads(done.stdout)
    assert desk.proposal(psbt_id)["replaced_by_psbt_id"] == newer["psbt_id"]
    finished(desk, newer["psbt_id"])


def test_a_proposal_is_cancelled_and_what_is_out_is_said(desk, service):
    psbt_id = proposed(desk)
    assert service("proposal", "cancel", psbt_id, answers="n\n").exit_code == Exit.DECLINED
    assert service("proposal", "cancel", psbt_id[:8], "--yes").exit_code == Exit.USAGE
    assert status(desk, psbt_id) == ["PENDING"]
    told = service("proposal", "cancel", psbt_id, "--reason", "twice", answers="y\n")
    assert told.exit_code == Exit.OK, told.output
    assert "The platform has no signature of it; its coins are free. A signer may hold one:" in told.stdout
    assert status(desk, psbt_id) == ["CANCELLED"]


def test_a_member_is_removed_after_confirmation(desk, service):
    desk.world.member(1, "dora@example.org")
    assert service("member", "remove", "dora@example.org", answers="n\n").exit_code == Exit.DECLINED
    told = service("member", "remove", "dora@example.org", answers="y\n")
    assert told.stdout == "dora@example.org is no longer a member.\n", told.output
    assert "dora@example.org" not in {one.email for one in sdk(desk.world, "admin@example.org").members(1)}


def change(desk, what):
    with desk.store.write() as db:
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
