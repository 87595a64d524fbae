"""Whoever may sign reads what others signed; anybody else, and everybody after the end, the unsigned PSBT
(P52).
"""

import pytest

from custody.schemas.call import PermissionName
from multisig import Psbt
from signerd.core.values import identity_of
from tests.support.custody import SIGNERS, ok
from tests.support.replacing import bump, cancel, made, take_back
from tests.support.staff import add_someone, remove_permission

SIGNER_ROLE = 2


@pytest.fixture
def psbt_id(desk):
    desk.deposit(500_000)
    return made(desk.propose(150_000, fee_rate="2"))


def shown(reader, psbt_id) -> set[int]:
    """How many signatures the inputs carry: in the record, and in the list, which must agree."""
    record = ok(reader.get("/api/v1/psbt", psbt_id=psbt_id))
    listed = ok(reader.get("/api/v1/psbt", workspace_id=record["workspace_id"]))
    assert record == next(each for each in listed if each["psbt_id"] == psbt_id)
    return {len(item.partial_signatures) for item in Psbt.parse(record["psbt_base64"]).inputs}


def shown_to_signers(desk, psbt_id) -> list[set[int]]:
    return [shown(desk.signers[name], psbt_id) for name in SIGNERS]


def test_p52_only_those_who_may_sign_read_what_others_signed(desk, psbt_id):
    """Not a member with every other permission, nor one who may approve and is no signer of this vault."""
    most = add_someone(desk.world, "Most", set(PermissionName) - {PermissionName.PAYMENT_APPROVE})
    other = add_someone(desk.world, "Other", {PermissionName.PAYMENT_APPROVE})
    before = desk.proposal(psbt_id)
    desk.approve("alice", psbt_id)
    assert shown_to_signers(desk, psbt_id) == [{1}] * 3
    for reader in (desk.admin, most.calls, other.calls):
        assert shown(reader, psbt_id) == {0}
        record = ok(reader.get("/api/v1/psbt", psbt_id=psbt_id))
        assert record["psbt_base64"] == before["psbt_base64"], "the very bytes that were proposed"
        assert record["collected_signatures"] == 1
    desk.approve("bob", psbt_id)
    assert shown_to_signers(desk, psbt_id) == [{2}] * 3
    assert shown(desk.admin, psbt_id) == {0}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (cancel, "CANCELLED"),
        (take_back, "PENDING"),
        (lambda desk, psbt_id: bump(desk, psbt_id, fee_rate="5"), "PENDING"),
    ],
    ids=["cancelled", "being taken back", "replaced by a fee bump"],
)
def test_p52_signatures_of_an_ended_or_replaced_proposal_are_not_shown(desk, psbt_id, end, status):
    desk.approve("alice", psbt_id)
    before = desk.proposal(psbt_id, "bob")
    ok(end(desk, psbt_id))
    assert shown_to_signers(desk, psbt_id) == [{0}] * 3
    after = desk.proposal(psbt_id, "bob")
    assert (after["status"], after["collected_signatures"]) == (status, 1)
    seen = {identity_of(Psbt.parse(each["psbt_base64"]).to_bytes()) for each in (before, after)}
    assert len(seen) == 1, "to a signer's daemon it is the same proposal"


def test_p52_a_signer_who_may_not_sign_any_more_reads_none(desk, psbt_id):
    desk.approve("alice", psbt_id)
    lost = ok(desk.signers["carol"].get("/api/v1/keys"))[0]["ID"]
    ok(desk.signers["carol"].post("/api/v1/revoke-key", {"key_id": lost, "reason": "lost"}))
    assert shown_to_signers(desk, psbt_id) == [{1}, {1}, {0}]
    ok(remove_permission(desk.admin, SIGNER_ROLE, "PAYMENT_APPROVE", force=True))
    assert shown_to_signers(desk, psbt_id)[:2] == [{0}] * 2
