"""Tokens are kept only where their bytes prove them (S12); which addresses are known to be used outlives a
restart (S29); a journal that was restored is careful until it has caught up.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from multisig import CHANGE, ChangeTo, Psbt, TxOut, build_psbt, op_return_script, sats
from multisig.tokens import encode_payload, token_script
from signerd.core.audit import first_fault
from signerd.core.events import AnswerImported, Approved, Exported, JudgeAgain, PersonDeclined
from signerd.core.following import unfollowed_of
from signerd.core.places import policy_code
from signerd.core.states import State
from signerd.core.tokens import NotProven, PublishedToken, prove_token
from signerd.core.values import Snapshot
from signerd.errors import IllegalEvent, JournalUnwritable, NotCaughtUp
from signerd.journal import Journal
from tests.signerd.journal.test_journal import NOW, open_one, prepared
from tests.signerd.journal.test_spending import Desk as WithRules
from tests.support.backups import approve
from tests.support.desk import VAULT, judge_again, reviewed, signed_by, snapshot_of, spend
from tests.support.payments import shop
from tests.support.tokens import GOLD, HOLDER, call, deployment_of, gold, published, token_snapshot
from tests.support.wallets import ALICE, fund, pay

DEPLOYMENT = deployment_of(GOLD).serialize()
OTHER = gold(name="Sand of the House")


def test_a_call_is_refused_until_its_token_is_proven_and_asked_about_then(journal: Journal) -> None:
    step = journal.poll(token_snapshot(call()))
    assert step.record.state is State.REFUSED
    assert journal.learn_token(call(), published(GOLD)) == (JudgeAgain(),)
    news = judge_again(journal)
    assert journal.record("t-1").state is State.WAITING_PERSON
    assert news
    assert reviewed(journal, "t-1").token == GOLD
    assert first_fault(journal.audit()) is None


def test_a_deployment_s_bytecode_is_kept_by_its_hash(journal: Journal) -> None:
    journal.poll(token_snapshot(GOLD.deployment))
    journal.learn_token(GOLD.deployment, PublishedToken(GOLD.blob))
    judge_again(journal)
    assert journal.record("t-1").state is State.WAITING_PERSON
    # That it was deployed, and under which id, nothing has shown yet.
    assert journal.bytecode(call()) is None


def test_listed_addresses_of_a_deployment_are_looked_up_among_all_pins(journal: Journal) -> None:
    listing, plain = gold(whitelist=(HOLDER,)), token_snapshot(GOLD.deployment, psbt_id="t-2")
    journal.poll(token_snapshot(listing.deployment))
    journal.poll(plain)
    for token in (listing, GOLD):
        journal.learn_token(token.deployment, PublishedToken(token.blob))
    assert journal.review_context(journal.record("t-1").snapshot).pins == journal.pins()
    assert journal.pins()
    # A deployment that lists no addresses is judged without pins.
    assert journal.review_context(plain).pins == ()


def changed_by_one_bit(raw: bytes) -> bytes:
    return bytes((*raw[:40], raw[40] ^ 1, *raw[41:]))


FORGED = {
    "no deployment": PublishedToken(GOLD.blob),
    "the blob of another deployment": PublishedToken(OTHER.blob, DEPLOYMENT),
    "another deployment and its blob": published(OTHER),
    "a forged blob": PublishedToken(GOLD.blob.replace(b'"decimals":2', b'"decimals":8'), DEPLOYMENT),
    "no bytecode": PublishedToken(b"", DEPLOYMENT),
    "a forged deployment": PublishedToken(GOLD.blob, changed_by_one_bit(DEPLOYMENT)),
    "a deployment cut short": PublishedToken(GOLD.blob, DEPLOYMENT[:-1]),
    "another transaction": PublishedToken(GOLD.blob, spend().tx.serialize()),
    "no transaction": PublishedToken(GOLD.blob, b"\x00"),
}


@pytest.mark.parametrize("what", FORGED)
def test_s12_what_proves_nothing_is_not_kept(journal: Journal, what: str) -> None:
    journal.poll(token_snapshot(call()))
    before = journal.head()
    with pytest.raises(NotProven):
        journal.learn_token(call(), FORGED[what])
    assert journal.head() == before
    assert journal.bytecode(call()) is None
    assert journal.record("t-1").state is State.REFUSED


DATA = TxOut(sats(0), token_script(GOLD.deployment))
WITHOUT_EFFECT = {
    "no payload": [],
    "two payloads": [DATA, TxOut(sats(0), token_script(OTHER.deployment))],
    "an amount beside it": [replace(DATA, amount=sats(1))],
    "a call": [TxOut(sats(0), token_script(call()))],
    "a payload cut short": [TxOut(sats(0), op_return_script(encode_payload(GOLD.deployment)[:-1]))],
}


@pytest.mark.parametrize("data", WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_s12_a_transaction_that_deploys_nothing_proves_no_token(data: list[TxOut]) -> None:
    tx = replace(deployment_of(GOLD), outputs=(*spend().tx.outputs, *data))
    with pytest.raises(NotProven):
        prove_token(tx.txid, PublishedToken(GOLD.blob, tx.serialize()))


def test_what_is_known_stays_as_it_is(journal: Journal) -> None:
    journal.learn_token(call(), published(GOLD))
    journal.learn_token(call(), published(GOLD))
    assert journal.bytecode(call()) == GOLD
    for table in ("tokens", "bytecodes"):
        with pytest.raises(sqlite3.IntegrityError, match="never changes"):
            journal._db.execute(f"UPDATE {table} SET hash = x'00'")


class Desk(WithRules):
    def offer(self, index: int) -> Snapshot:
        outputs = [pay(50_000, f"shop {index}"), ChangeTo(sats(39_000), CHANGE, index)]
        snapshot = snapshot_of(build_psbt(VAULT, [fund(VAULT, 90_000, salt=index)], outputs, 0), f"p-{index}")
        self.journal.poll(snapshot)
        return snapshot

    def held(self, snapshot: Snapshot) -> bool:
        return "change-index" in reviewed(self.journal, snapshot.psbt_id).to_acknowledge


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.journal.close()


def test_s29_a_signed_place_is_known_after_a_restart_and_an_offered_one_is_not(desk: Desk) -> None:
    far, further = desk.offer(1_500), desk.offer(2_400)
    assert desk.held(far)
    assert desk.held(further)
    desk.sign(far)
    assert not desk.held(further)
    desk.restart()
    assert not desk.held(further)
    assert desk.held(desk.offer(2_501))
    # A platform that relists the quorum under another id finds the same places.
    assert desk.journal.review_context(further).places.keys() == {policy_code(VAULT)}


def test_s29_a_signature_that_could_not_be_stored_makes_no_place_known(desk: Desk) -> None:
    far, further = desk.offer(1_500), desk.offer(2_400)
    desk.fails_at = "journal:before:DeviceReturned"
    with pytest.raises((OSError, JournalUnwritable)):
        desk.sign(far)
    desk.fails_at = ""
    assert desk.held(further)


@pytest.fixture
def folder(tmp_path):
    """An approval that no device answered stands in it."""
    with prepared(tmp_path) as journal:
        approve(journal, shop((1,), psbt_id="p-1"))
        assert journal.record("p-1").state is State.WAITING_DEVICE
        journal.hear(1, frozenset({"a code"}), [], "p-0")
        journal.restore(NOW)
    return tmp_path


def yes(journal, psbt_id):
    found = reviewed(journal, psbt_id)
    return journal.decide(psbt_id, Approved(found.digest, found.to_acknowledge))


def with_our_signature(coins, psbt_id, signer=ALICE):
    snapshot = shop(coins, psbt_id=psbt_id)
    return replace(snapshot, psbt=signed_by(signer, snapshot), collected=1)


def test_approvals_lapse_and_nothing_is_approved_before_the_list_was_read_for_the_vault(folder):
    with open_one(folder) as journal:
        assert (journal.record("p-1").state, journal.record("p-1").approval) == (State.WAITING_PERSON, None)
        assert first_fault(journal.audit()) is None
        assert journal.heard_until(1, frozenset()) is None
        # Another vault, or another workspace, does not count.
        journal.caught_up(1, ["another code"])
        journal.caught_up(2, [VAULT.verification_code])
        assert journal.behind() == {1}
        with pytest.raises(NotCaughtUp, match="workspace 1"):
            yes(journal, "p-1")
        journal.caught_up(1, [VAULT.verification_code])
        assert yes(journal, "p-1").record.state is State.WAITING_DEVICE
    with open_one(folder) as journal:
        assert journal.behind() == frozenset()
        journal.restore(NOW)
    with open_one(folder) as journal:
        assert journal.behind() == {1}


def test_without_a_restore_there_is_nothing_to_catch_up(tmp_path):
    with prepared(tmp_path) as journal:
        assert (journal.restored, journal.behind()) == (None, frozenset())
        journal.caught_up(1, [VAULT.verification_code])
        assert "caught-up" not in [entry.note.kind for entry in journal.audit()]


@pytest.mark.parametrize("inputs", [None, [0]], ids=["whole", "a part of it"])
def test_what_was_signed_since_counts_as_signed_for_the_same_payment_and_for_limits(folder, inputs):
    shown = shop((1, 2), psbt_id="p-2")
    signed = replace(shown, psbt=ALICE.sign(Psbt.parse(shown.psbt), inputs=inputs).to_bytes(), collected=1)
    with open_one(folder) as journal:
        record = journal.recall(signed).record
        assert record.state is (State.QUARANTINED if inputs else State.SUBMITTED)
        journal.caught_up(1, [VAULT.verification_code])
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "paid-twice" in reviewed(journal, "p-3").to_acknowledge
        assert [spent.psbt_id for spent in journal.spent()] == ["p-2"]
        assert journal.recall(signed) is None
        with pytest.raises(IllegalEvent):
            journal.decide("p-2", PersonDeclined("no"))


def test_what_others_signed_before_is_compared_after(tmp_path):
    other = unfollowed_of(shop((5,), psbt_id="u-1", collected=1))
    with prepared(tmp_path) as journal:
        journal.hear(1, frozenset({VAULT.verification_code}), [(VAULT.verification_code, other)], "u-1")
        journal.restore(NOW)
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "signed-by-others" in reviewed(journal, "p-3").to_acknowledge


@pytest.fixture
def exported(tmp_path):
    """A proposal was given out for a device without a cable before the backup."""
    with prepared(tmp_path) as journal:
        approve(journal, shop((1,), psbt_id="p-1"))
        journal.decide("p-1", Exported())
        journal.restore(NOW)
    return tmp_path


def test_what_was_exported_still_is_and_its_answer_waits_for_the_list(exported):
    answer = AnswerImported(with_our_signature((1,), "p-1").psbt)
    with open_one(exported) as journal:
        assert journal.record("p-1").state is State.EXPORTED
        with pytest.raises(NotCaughtUp):
            journal.decide("p-1", answer)
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "paid-twice" in reviewed(journal, "p-3").to_acknowledge
        journal.caught_up(1, [VAULT.verification_code])
        assert journal.decide("p-1", answer).record.signature is not None
