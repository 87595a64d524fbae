"""Treasurers' commands for a payment under way and for a member who leaves."""

import json

from custody.common.terminal import Exit
from tests.support.custody import SHOP
from tests.support.replacing import finished, made, status
from tests.support.sdk import sdk


def proposed(desk, **changes) -> str:
    return made(desk.propose(100_000, recipients=[SHOP], fee_rate="2", **changes))


def test_a_payment_is_bumped(desk, service):
    psbt_id = proposed(desk)
    refused = service("proposal", "bump", psbt_id[:8], "--fee-rate", "9", answers="n\n")
    assert (refused.exit_code, len(desk.admin.get("/api/v1/psbt", workspace_id=1).json())) == (
        Exit.DECLINED,
        1,
    )
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
