"""What storing a proposal leaves in the database."""

from custody.server.service.stored_vaults import policy_of
from custody.server.store.models import ProposalRow, VaultRow
from multisig import Psbt
from tests.support.custody import ok


def test_what_is_stored_is_what_was_answered_and_the_next_change_goes_elsewhere(desk):
    """The row is written past the session: what the session takes it for must be what the database holds."""
    desk.deposit(200_000, 200_000)
    answers = [ok(desk.propose(50_000)) for _ in range(2)]
    with desk.world.platform.services.store.read() as db:
        rows = [db.get_one(ProposalRow, answer["psbt_id"]) for answer in answers]
        vault = db.get_one(VaultRow, desk.vault["id"])
        policy = policy_of(vault)
        changes = {policy.script_pubkey(1, index) for index in range(vault.next_change_index)}
    for answer, row in zip(answers, rows, strict=True):
        psbt = Psbt.parse(answer["psbt_base64"])
        assert row.psbt == psbt.to_bytes()
        assert (row.txid_expected, row.status) == (psbt.tx.txid, "PENDING")
        assert row.withdrawn_signatures == 0
        assert row.txid is row.final_tx is row.replaced_by_id is row.profile_key_id is None
    paid = [
        {output.script_pubkey for output in Psbt.parse(answer["psbt_base64"]).outputs} & changes
        for answer in answers
    ]
    assert all(len(scripts) == 1 for scripts in paid)
    assert paid[0] != paid[1]


def test_a_proposal_that_is_refused_in_its_turn_leaves_nothing(desk, monkeypatch):
    """Its row, its lock and its change address are written one by one: the last failure takes all of them
    back.
    """
    desk.deposit(200_000)
    audit = desk.world.platform.services.tools.audit
    with desk.world.platform.services.store.read() as db:
        before = db.get_one(VaultRow, desk.vault["id"]).next_change_index

    def refuse(*_given, **_named):
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(type(audit), "record", refuse)
        assert desk.propose(50_000).status_code == 500
    assert desk.rows(ProposalRow) == []
    with desk.world.platform.services.store.read() as db:
        assert db.get_one(VaultRow, desk.vault["id"]).next_change_index == before
    ok(desk.propose(50_000))
