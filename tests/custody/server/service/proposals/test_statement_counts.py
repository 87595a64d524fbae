"""What a proposal and an approval ask of the database while all other writers wait: the fewer, the more of
them a second.
"""

from contextlib import contextmanager

from sqlalchemy import event

from custody.server.service.stored_vaults import policy_of
from custody.server.store.models import ProposalRow, VaultRow
from multisig import Psbt
from tests.support.custody import ok

# BEGIN and COMMIT are not counted. A change that raises a count says why. A signer's earlier answer is read
# by its key, apart from their seat. Whom a proposal waits for, and their mails, are two.
PROPOSAL, FIRST, LAST = 23, 15, 21


@contextmanager
def turns(store):
    """The statements of every transaction that writes."""
    seen, engine = [], store._database.writing

    def see(_connection, _cursor, statement, *_rest):
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", see)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", see)


def asked(seen: list[str]) -> int:
    return sum(not statement.startswith("BEGIN") and "pg_advisory" not in statement for statement in seen)


def test_a_turn_asks_no_more_than_it_must(desk):
    desk.deposit(400_000)
    store = desk.world.platform.services.store
    with turns(store) as seen:
        psbt_id = ok(desk.propose(50_000))["psbt_id"]
    assert asked(seen) <= PROPOSAL, seen
    for name, most in (("alice", FIRST), ("bob", LAST)):
        signed = desk.signed(name, psbt_id)
        with turns(store) as seen:
            ok(desk.submit(name, psbt_id, signed))
        assert asked(seen) <= most, seen


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
