"""Signatures are verified before the writers' turn; what others do meanwhile is neither lost nor overwritten
(P11, P12).
"""

import pytest

from custody.server.chain.engine import InvalidSpend
from custody.server.jobs.outbox import BROADCAST
from custody.server.proposals import signing, verifying
from custody.server.store.models import JobRow, ProposalRow, SignatureRow
from multisig import Psbt
from tests.support.custody import ok, refused


@pytest.fixture
def psbt_id(funded):
    return ok(funded.propose(250_000, 200_000))["psbt_id"]


@pytest.fixture
def verified(monkeypatch):
    """How often a submitted PSBT was verified."""
    calls = []

    def counted(text, signer):
        calls.append(signer)
        return verifying.verified(text, signer)

    monkeypatch.setattr(signing, "verified", counted)
    return calls


def meanwhile(desk, monkeypatch, *acts):
    """Each act happens before the next turn of a writer, one for each turn."""
    store, left = desk.store, list(acts)
    write = store.write

    def interrupted(*asked):
        if left:
            left.pop(0)()
        return write(*asked)

    monkeypatch.setattr(store, "write", interrupted)


def count(desk, table, *where) -> int:
    return len(desk.rows(table, *where))


def test_the_signature_that_came_in_between_is_kept_beside_ours(funded, psbt_id, monkeypatch, verified):
    bodies = {name: funded.signed(name, psbt_id) for name in ("alice", "bob")}
    meanwhile(funded, monkeypatch, lambda: ok(funded.submit("bob", psbt_id, bodies["bob"])))
    answer = ok(funded.submit("alice", psbt_id, bodies["alice"]))
    assert (answer["status"], answer["collected_signatures"]) == ("SIGNED", 2)
    assert len(verified) == 3, "ours, theirs, and ours again"
    (proposal,) = funded.rows(ProposalRow)
    inputs = Psbt.parse(proposal.psbt).inputs
    assert all(len(item.partial_signatures) == 2 for item in inputs)
    assert count(funded, SignatureRow) == 2 * len(inputs)
    assert count(funded, JobRow, JobRow.kind == BROADCAST) == 1
    funded.settle()
    assert funded.proposal(psbt_id)["status"] == "BROADCASTING"


def test_a_proposal_that_ended_in_between_takes_no_signature(funded, psbt_id, monkeypatch):
    signed = funded.signed("alice", psbt_id)

    meanwhile(funded, monkeypatch, lambda: funded.reject(psbt_id))
    refused(funded.submit("alice", psbt_id, signed), 409, "STATE_CONFLICT")
    assert count(funded, SignatureRow) == 0


@pytest.mark.parametrize("step", ["_accept", "final_transaction"])
def test_others_write_while_signatures_are_verified_and_the_engine_runs(funded, psbt_id, monkeypatch, step):
    funded.approve("alice", psbt_id)
    real = getattr(verifying, step)

    def slowly(*args):
        ok(funded.admin.post("/api/v1/update-user-info", {"first_name": "Ada"}))
        return real(*args)

    monkeypatch.setattr(verifying, step, slowly)
    assert funded.approve("bob", psbt_id)["status"] == "SIGNED"


def test_what_the_engine_refuses_is_neither_kept_nor_sent(funded, psbt_id, monkeypatch):
    funded.approve("alice", psbt_id)
    before = funded.proposal(psbt_id)

    def refuse(*_args):
        raise InvalidSpend("no")

    monkeypatch.setattr(verifying, "verify_transaction", refuse)
    assert funded.submit("bob", psbt_id, funded.signed("bob", psbt_id)).status_code == 500
    assert funded.proposal(psbt_id) == before
    assert count(funded, JobRow, JobRow.kind == BROADCAST) == 0
