"""Submitted signatures (P1 to P10), declines, and what an answer says. They are verified before the writers'
turn: what others do meanwhile is neither lost nor overwritten (P11, P12). Whoever may sign reads what others
signed; anybody else, and everybody after the end, the unsigned PSBT (P52).
"""

from base64 import b64encode
from typing import Any

import pytest
from sqlalchemy import select

from custody.schemas.call import PermissionName
from custody.server.chain.engine import InvalidSpend
from custody.server.jobs.outbox import BROADCAST
from custody.server.proposals import signing, verifying
from custody.server.sign_in.access_tokens import end_sessions
from custody.server.store.models import JobRow, KeyRow, ProposalRow, SignatureRow
from multisig import Network, Psbt, Sats, TxOut, Vault, finalise
from signerd.core.values import identity_of
from tests.support.custody import SIGNERS, ok, refused, sign
from tests.support.platform import seed
from tests.support.replacing import bump, cancel, take_back
from tests.support.staff import add_someone, remove_permission
from tests.support.wallets import with_input, with_output

SIGHASH_NONE, SIGHASH_SINGLE, SIGHASH_ANYONE = 2, 3, 0x81
ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


@pytest.fixture
def psbt_id(funded):
    """Spends two coins, so that an input can be left out."""
    created = ok(funded.propose(250_000, 200_000))
    assert len(Psbt.parse(created["psbt_base64"]).inputs) >= 2
    return created["psbt_id"]


def flipped(signature: bytes) -> bytes:
    return signature[:12] + bytes([signature[12] ^ 1]) + signature[13:]


def with_signature(psbt, index, change):
    (key, signature), *_ = psbt.inputs[index].partial_signatures.items()
    return with_input(psbt, index, partial_signatures={key: change(signature)})


def high_s(signature):
    length = signature[3]
    r, s = signature[4 : 4 + length], int.from_bytes(signature[6 + length : -1])
    raw = (ORDER - s).to_bytes(33).lstrip(b"\x00")
    raw = b"\x00" + raw if raw[0] >= 0x80 else raw
    body = b"\x02" + bytes([len(r)]) + r + b"\x02" + bytes([len(raw)]) + raw
    return b"\x30" + bytes([len(body)]) + body + signature[-1:]


def revoke(desk, name, reason):
    with desk.store.write() as db:
        key = db.scalars(select(KeyRow).where(KeyRow.user_id == desk.user_ids[name])).one()
        key.status, key.revoked_reason = "revoked", reason


def swapped(psbt):
    place = next(i for i, out in enumerate(psbt.outputs) if out.amount == 250_000)
    return with_output(psbt, place, amount=Sats(250_001))


def smuggled(desk, psbt):
    """Alice's signature as that of a key which is not in the vault."""
    account = desk.policy.cosigners[0].origin.path
    foreign = seed(9).xpub(account, desk.policy.network).derive_public_key(0, 0)
    (signature,) = psbt.inputs[0].partial_signatures.values()
    return with_input(psbt, 0, partial_signatures={foreign: signature})


def doubled(raw: bytes) -> bytes:
    """The first global pair is the unsigned transaction: said twice."""
    size = raw[7]
    end = 5 + 2 + 1 + size if size < 0xFD else 5 + 2 + 3 + int.from_bytes(raw[8:10], "little")
    return raw[:5] + raw[5:end] * 2 + raw[end:]


def test_what_is_refused_changes_nothing(funded, psbt_id, monkeypatch):
    """P1, P2, P3, P5, P6, P10, and P47 in small."""
    before = funded.proposal(psbt_id)
    base, signed = Psbt.parse(before["psbt_base64"]), funded.signed("alice", psbt_id)
    alice, raw = funded.devices["alice"], signed.to_bytes()
    elsewhere = with_output(base, 0, script_pubkey=b"\x00\x14" + bytes(20))
    for what, psbt, status, code in (
        ("P1: an output of the signed PSBT", swapped(signed), 422, "PSBT_MISMATCH"),
        ("P1: signed by the thief", sign(alice, elsewhere), 422, "PSBT_MISMATCH"),
        ("P2", smuggled(funded, signed), 403, "NOT_A_SIGNER"),
        ("P3: Bob's", funded.signed("bob", psbt_id), 403, "NOT_A_SIGNER"),
        ("P3: beside her own", sign(funded.devices["bob"], signed), 403, "NOT_A_SIGNER"),
        *(
            (f"P5: {sighash}", funded.signed("alice", psbt_id, sighash=sighash), 422, "BAD_SIGNATURE")
            for sighash in (SIGHASH_NONE, SIGHASH_SINGLE, SIGHASH_ANYONE, 0)
        ),
        ("P6", with_signature(signed, 0, high_s), 422, "BAD_SIGNATURE"),
        ("without a signature", base, 422, "BAD_SIGNATURE"),
        # P10: what cannot be read, is cut short or has a key twice.
        *((text, text, 422, "VALIDATION") for text in ("not base64 at all!", "A" * 2_796_204)),
        ("P10: cut short", b64encode(raw[:-1]).decode(), 422, "VALIDATION"),
        ("P10: a key twice", b64encode(doubled(raw)).decode(), 422, "VALIDATION"),
    ):
        answer = funded.submit("alice", psbt_id, psbt)
        assert (answer.status_code, answer.json()["code"]) == (status, code), what[:40]
    for spoil in (
        # P6: not DER, or not valid.
        lambda signature: signature[:-1] + b"\x00\x01",
        lambda _: b"\x01",
        flipped,
    ):
        assert funded.submit("alice", psbt_id, with_signature(signed, 0, spoil)).status_code == 422

    # A lost key approves nothing, a superseded one nothing that leaves the workspace.
    for reason in ("lost", "superseded"):
        revoke(funded, "alice", reason)
        refused(funded.submit("alice", psbt_id, signed), 403, "KEY_REVOKED")
    # Parsing costs time (P10): the server does none for a member who could not sign anyway.
    monkeypatch.setattr(verifying, "ReceivedPsbt", None)
    funded.signers["nobody"] = funded.admin
    refused(funded.submit("nobody", psbt_id, "cHNidP8="), 403, "NOT_A_SIGNER")
    refused(funded.submit("alice", psbt_id, "cHNidP8="), 403, "KEY_REVOKED")
    before["signers"][0]["may_approve"] = False
    assert funded.proposal(psbt_id) == before


class TestKept:
    def test_p4_a_signature_counts_once_and_the_threshold_stores_all_that_follows_together(
        self, funded, psbt_id
    ):
        signed = funded.signed("alice", psbt_id)
        late, bad = funded.signed("carol", psbt_id), funded.signed("carol", psbt_id, sighash=SIGHASH_NONE)
        first = ok(funded.submit("alice", psbt_id, signed))
        after = funded.proposal(psbt_id)
        again = ok(funded.submit("alice", psbt_id, signed))
        assert (first["collected_signatures"], again["collected_signatures"]) == (1, 1)
        assert "before" in again["detail"]
        assert funded.proposal(psbt_id) == after
        assert funded.rows(JobRow, JobRow.kind == BROADCAST) == []

        funded.approve("bob", psbt_id)
        (proposal,), (job,) = funded.rows(ProposalRow), funded.rows(JobRow, JobRow.kind == BROADCAST)
        assert proposal.final_tx is not None
        assert (job.kind, job.subject) == ("broadcast", psbt_id)
        assert len(funded.rows(SignatureRow)) == 2 * len(Psbt.parse(proposal.psbt).inputs)
        actions = funded.audited()
        assert actions[-3:] == ["SIGNATURE_SUBMITTED", "SIGNATURE_SUBMITTED", "PROPOSAL_FINALISED"]

        # A third comes too late and is told so; the same one is good when all has moved on, too.
        refused(funded.submit("carol", psbt_id, bad), 422, "BAD_SIGNATURE")
        assert "not recorded" in ok(funded.submit("carol", psbt_id, late))["detail"]
        kept = {row.public_key for row in funded.rows(SignatureRow)}
        assert kept.isdisjoint(late.inputs[0].partial_signatures)
        funded.settle()
        again = ok(funded.submit("alice", psbt_id, signed))
        assert (again["status"], again["collected_signatures"]) == ("BROADCASTING", 2)

    def test_p7_p9_falsified_fields_are_ignored_and_after_garbage_it_still_finalises(self, funded, psbt_id):
        signed = funded.signed("alice", psbt_id)
        utxo = signed.inputs[0].witness_utxo
        lying = with_input(
            signed, 0, witness_utxo=TxOut(Sats(utxo.amount + 1), utxo.script_pubkey), non_witness_utxo=None
        )
        ok(funded.submit("alice", psbt_id, lying))
        kept = Psbt.parse(funded.proposal(psbt_id, "bob")["psbt_base64"])
        assert kept.inputs[0].witness_utxo == utxo
        assert kept.inputs[0].non_witness_utxo == signed.inputs[0].non_witness_utxo
        # On one input, beside a good one.
        bad = with_signature(funded.signed("carol", psbt_id), 1, flipped)
        refused(funded.submit("carol", psbt_id, bad), 422, "BAD_SIGNATURE")
        assert funded.approve("bob", psbt_id)["status"] == "SIGNED"
        funded.settle()
        assert funded.proposal(psbt_id)["status"] == "BROADCASTING"

    def test_p8_some_inputs_only_are_kept_and_progress_is_the_minimum_over_the_inputs(self, funded, psbt_id):
        others = list(range(1, len(funded.psbt(psbt_id).inputs)))

        def submit(name: str, inputs: list[int]) -> dict:
            return ok(funded.submit(name, psbt_id, funded.signed(name, psbt_id, inputs=inputs)))

        answer = submit("alice", [0])
        assert (answer["status"], answer["collected_signatures"]) == ("PENDING", 0)
        assert answer["missing_inputs"] == others
        shown = {s["user_id"]: s for s in funded.proposal(psbt_id)["signers"]}
        mine = shown[str(funded.user_ids["alice"])]
        assert (mine["is_signed"], mine["decision"], mine["signed_at"]) == (False, "approve", None)
        rest = submit("alice", others)
        assert (rest["collected_signatures"], rest["missing_inputs"]) == (1, [])
        assert submit("bob", [0])["collected_signatures"] == 1
        answer = submit("carol", others)
        assert (answer["status"], answer["collected_signatures"]) == ("SIGNED", 2)

    def test_a_finalised_psbt_is_taken_apart(self, tmp_path, funded):
        one = ok(funded.create_vault("Till", m=1))
        funded.deposit(90_000, to=one["address"])
        created = ok(funded.propose(50_000, wallet_id=one["id"]))
        policy = Vault.from_descriptor(one["descriptor"], Network.REGTEST)
        signed = sign(funded.devices["alice"], Psbt.parse(created["psbt_base64"]))
        final = finalise(signed, policy)
        taken = with_input(signed, 0, partial_signatures={}, final_script_witness=final.inputs[0].witness)
        answer = ok(funded.submit("alice", created["psbt_id"], taken))
        assert answer["status"] == "SIGNED"

    def test_a_failure_between_finalising_and_the_outbox_keeps_nothing(self, funded, psbt_id, monkeypatch):
        """P12, before the commit: the signature itself is not half kept."""
        funded.approve("alice", psbt_id)
        before = funded.proposal(psbt_id)
        signed = funded.signed("bob", psbt_id)

        def fail(*_args, **_kwargs):
            raise RuntimeError("the disk is full")

        monkeypatch.setattr("custody.server.proposals.signing.enqueue_new", fail)
        assert funded.submit("bob", psbt_id, signed).status_code == 500
        assert funded.proposal(psbt_id) == before
        monkeypatch.undo()
        assert ok(funded.submit("bob", psbt_id, signed))["status"] == "SIGNED"


def test_a_signers_word_is_final_and_declines_end_it_with_the_threshold(funded, psbt_id):
    said = [ok(funded.decline("alice", psbt_id)) for _ in range(2)]
    assert [each["status"] for each in said] == ["PENDING", "PENDING"], "twice it counts once"
    assert said[0]["detail"].startswith("Your decline does not end it")
    funded.approve("bob", psbt_id)
    before, late = funded.proposal(psbt_id), funded.signed("carol", psbt_id)
    again = funded.submit("alice", psbt_id, funded.signed("alice", psbt_id)), funded.decline("bob", psbt_id)
    told = [refused(each, 409, "STATE_CONFLICT")["detail"] for each in again]
    assert ["is final" in told[0], "cannot revoke a signature" in told[1]] == [True, True]
    assert funded.proposal(psbt_id) == before
    funded.world.clock.advance(seconds=1)
    answer = ok(funded.decline("carol", psbt_id, "a `fraud`"))
    assert answer["detail"] == "Your decline ends it: the others cannot complete it."
    ended = funded.proposal(psbt_id)
    assert ended["failure_code"] == "declined"
    assert ended["failure_reason"].endswith("declined it: a 'fraud'")
    assert (funded.proposal(psbt_id)["status"], funded.wallets()[0]["locked_sats"]) == ("REJECTED", 0)
    refused(funded.submit("carol", psbt_id, late), 409, "STATE_CONFLICT")


def test_an_expired_proposal_takes_no_signature_and_ends_once(funded, psbt_id):
    signed = funded.signed("alice", psbt_id)
    funded.later(days=15)
    refused(funded.submit("alice", psbt_id, signed), 409, "STATE_CONFLICT")
    for _ in range(2):
        funded.world.platform.background.expiry()()
    assert funded.audited().count("PROPOSAL_EXPIRED") == 1
    assert funded.proposal(psbt_id)["status"] == "EXPIRED"
    refused(funded.submit("alice", psbt_id, signed), 409, "STATE_CONFLICT")
    refused(funded.decline("carol", psbt_id), 409, "STATE_CONFLICT")


def test_a_session_that_was_ended_meanwhile_signs_nothing(funded, psbt_id, monkeypatch):
    """P23: the new password of the account's owner ends a thief's sessions at once."""
    signed, alice = funded.signed("alice", psbt_id), funded.user_ids["alice"]
    accept = verifying._accept

    def accept_slowly(*given: Any) -> Any:
        with funded.store.write() as db:
            end_sessions(db, alice, funded.world.clock(), "password reset", keep=None)
        return accept(*given)

    monkeypatch.setattr(verifying, "_accept", accept_slowly)
    refused(funded.submit("alice", psbt_id, signed), 401, "UNAUTHENTICATED")
    assert funded.proposal(psbt_id)["collected_signatures"] == 0


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


def test_the_signature_that_came_in_between_is_kept_beside_ours(funded, psbt_id, monkeypatch, verified):
    bodies = {name: funded.signed(name, psbt_id) for name in ("alice", "bob")}
    meanwhile(funded, monkeypatch, lambda: ok(funded.submit("bob", psbt_id, bodies["bob"])))
    answer = ok(funded.submit("alice", psbt_id, bodies["alice"]))
    assert (answer["status"], answer["collected_signatures"]) == ("SIGNED", 2)
    assert len(verified) == 3, "ours, theirs, and ours again"
    (proposal,) = funded.rows(ProposalRow)
    inputs = Psbt.parse(proposal.psbt).inputs
    assert all(len(item.partial_signatures) == 2 for item in inputs)
    assert len(funded.rows(SignatureRow)) == 2 * len(inputs)
    assert len(funded.rows(JobRow, JobRow.kind == BROADCAST)) == 1
    funded.settle()
    assert funded.proposal(psbt_id)["status"] == "BROADCASTING"


def test_a_proposal_that_ended_in_between_takes_no_signature(funded, psbt_id, monkeypatch):
    signed = funded.signed("alice", psbt_id)

    meanwhile(funded, monkeypatch, lambda: funded.reject(psbt_id))
    refused(funded.submit("alice", psbt_id, signed), 409, "STATE_CONFLICT")
    assert len(funded.rows(SignatureRow)) == 0


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
    assert len(funded.rows(JobRow, JobRow.kind == BROADCAST)) == 0


SIGNER_ROLE = 2


def shown(reader, psbt_id) -> set[int]:
    """How many signatures the inputs carry: in the record, and in the list, which must agree."""
    record = ok(reader.get("/api/v1/psbt", psbt_id=psbt_id))
    listed = ok(reader.get("/api/v1/psbt", workspace_id=record["workspace_id"]))
    assert record == next(each for each in listed if each["psbt_id"] == psbt_id)
    return {len(item.partial_signatures) for item in Psbt.parse(record["psbt_base64"]).inputs}


def shown_to_signers(funded, psbt_id) -> list[set[int]]:
    return [shown(funded.signers[name], psbt_id) for name in SIGNERS]


def test_p52_only_those_who_may_sign_read_what_others_signed(funded, psbt_id):
    """Not a member with every other permission, nor one who may approve and is no signer of this vault."""
    most = add_someone(funded.world, "Most", set(PermissionName) - {PermissionName.PAYMENT_APPROVE})
    other = add_someone(funded.world, "Other", {PermissionName.PAYMENT_APPROVE})
    before = funded.proposal(psbt_id)
    funded.approve("alice", psbt_id)
    assert shown_to_signers(funded, psbt_id) == [{1}] * 3
    for reader in (funded.admin, most.calls, other.calls):
        assert shown(reader, psbt_id) == {0}
        record = ok(reader.get("/api/v1/psbt", psbt_id=psbt_id))
        assert record["psbt_base64"] == before["psbt_base64"], "the very bytes that were proposed"
        assert record["collected_signatures"] == 1
    funded.approve("bob", psbt_id)
    assert shown_to_signers(funded, psbt_id) == [{2}] * 3
    assert shown(funded.admin, psbt_id) == {0}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (cancel, "CANCELLED"),
        (take_back, "PENDING"),
        (lambda desk, psbt_id: bump(desk, psbt_id, fee_rate="5"), "PENDING"),
    ],
    ids=["cancelled", "being taken back", "replaced by a fee bump"],
)
def test_p52_signatures_of_an_ended_or_replaced_proposal_are_not_shown(funded, psbt_id, end, status):
    funded.approve("alice", psbt_id)
    before = funded.proposal(psbt_id, "bob")
    ok(end(funded, psbt_id))
    assert shown_to_signers(funded, psbt_id) == [{0}] * 3
    after = funded.proposal(psbt_id, "bob")
    assert (after["status"], after["collected_signatures"]) == (status, 1)
    seen = {identity_of(Psbt.parse(each["psbt_base64"]).to_bytes()) for each in (before, after)}
    assert len(seen) == 1, "to a signer's daemon it is the same proposal"


def test_p52_a_signer_who_may_not_sign_any_more_reads_none(funded, psbt_id):
    funded.approve("alice", psbt_id)
    lost = ok(funded.signers["carol"].get("/api/v1/keys"))[0]["ID"]
    ok(funded.signers["carol"].post("/api/v1/revoke-key", {"key_id": lost, "reason": "lost"}))
    assert shown_to_signers(funded, psbt_id) == [{1}, {1}, {0}]
    ok(remove_permission(funded.admin, SIGNER_ROLE, "PAYMENT_APPROVE", force=True))
    assert shown_to_signers(funded, psbt_id)[:2] == [{0}] * 2
