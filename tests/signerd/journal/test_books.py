"""Tokens are kept only where their bytes prove them (S12); which addresses are known to be used outlives a
restart (S29).
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from multisig import CHANGE, ChangeTo, TxOut, build_psbt, sats
from multisig.tokens import token_script
from signerd.core.audit import first_fault
from signerd.core.places import policy_code
from signerd.core.states import State
from signerd.core.tokens import NotProven, Published
from signerd.core.values import Snapshot
from signerd.errors import JournalUnwritable
from signerd.journal import Journal
from tests.signerd.journal.test_journal import prepared
from tests.signerd.journal.test_spending import Desk as WithRules
from tests.support.desk import VAULT, snapshot_of, spend
from tests.support.tokens import CONTRACT, GOLD, HOLDER, call, deployment_of, gold, published, token_snapshot
from tests.support.wallets import fund, pay

DEPLOYMENT = deployment_of(GOLD).serialize()
OTHER = gold(name="Sand of the House")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with prepared(tmp_path) as opened:
        yield opened


def test_a_call_is_refused_until_its_token_is_proven_and_asked_about_then(journal: Journal) -> None:
    step = journal.poll(token_snapshot(call()))
    assert step.record.state is State.REFUSED
    effects = journal.learn_token(call(), published(GOLD))
    assert journal.record("t-1").state is State.WAITING_PERSON
    assert effects
    assert journal.review("t-1").token == GOLD
    assert first_fault(journal.audit()) is None


def test_a_deployment_s_bytecode_is_kept_by_its_hash(journal: Journal) -> None:
    journal.poll(token_snapshot(GOLD.deployment))
    journal.learn_token(GOLD.deployment, Published(GOLD.blob))
    assert journal.record("t-1").state is State.WAITING_PERSON
    # That it was deployed, and under which id, nothing has shown yet.
    assert journal.tokens.bytecode(call()) is None


def test_listed_addresses_of_a_deployment_are_looked_up_among_all_pins(journal: Journal) -> None:
    listing, plain = gold(whitelist=(HOLDER,)), token_snapshot(GOLD.deployment, psbt_id="t-2")
    journal.poll(token_snapshot(listing.deployment))
    journal.poll(plain)
    for token in (listing, GOLD):
        journal.learn_token(token.deployment, Published(token.blob))
    assert journal.review_context(journal.record("t-1").snapshot).pins == journal.pins()
    assert journal.pins()
    # A deployment that lists no addresses is judged without pins.
    assert journal.review_context(plain).pins == ()


def changed_by_one_bit(raw: bytes) -> bytes:
    return bytes((*raw[:40], raw[40] ^ 1, *raw[41:]))


def beside_another_output() -> bytes:
    tx = deployment_of(GOLD)
    extra = TxOut(sats(0), token_script(OTHER.deployment))
    return replace(tx, outputs=(*tx.outputs, extra)).serialize()


FORGED = {
    "no deployment": Published(GOLD.blob),
    "the blob of another deployment": Published(OTHER.blob, DEPLOYMENT),
    "another deployment and its blob": published(OTHER),
    "a forged blob": Published(GOLD.blob.replace(b'"decimals":2', b'"decimals":8'), DEPLOYMENT),
    "no bytecode": Published(b"", DEPLOYMENT),
    "a forged deployment": Published(GOLD.blob, changed_by_one_bit(DEPLOYMENT)),
    "a deployment cut short": Published(GOLD.blob, DEPLOYMENT[:-1]),
    "a transaction that deploys nothing": Published(GOLD.blob, spend().tx.serialize()),
    "two payloads": Published(GOLD.blob, beside_another_output()),
    "no transaction": Published(GOLD.blob, b"\x00"),
}


@pytest.mark.parametrize("what", FORGED)
def test_s12_what_proves_nothing_is_not_kept(journal: Journal, what: str) -> None:
    journal.poll(token_snapshot(call()))
    before = journal.head()
    with pytest.raises(NotProven):
        journal.learn_token(call(), FORGED[what])
    assert journal.head() == before
    assert journal.tokens.bytecode(call()) is None
    assert journal.record("t-1").state is State.REFUSED


def test_what_is_known_stays_as_it_is(journal: Journal) -> None:
    journal.learn_token(call(), published(GOLD))
    journal.learn_token(call(), published(GOLD))
    assert journal.tokens.bytecode(call()) == GOLD
    for table in ("tokens", "bytecodes"):
        with pytest.raises(sqlite3.IntegrityError, match="never changes"):
            journal._db.execute(f"UPDATE {table} SET hash = x'00'")


def test_the_witness_of_a_deployment_changes_nothing() -> None:
    tx = deployment_of(GOLD)
    assert tx.has_witness
    assert tx.serialize() != tx.serialize(include_witness=False)
    assert tx.txid == CONTRACT


class Desk(WithRules):
    def offer(self, index: int) -> Snapshot:
        outputs = [pay(50_000, f"shop {index}"), ChangeTo(sats(39_000), CHANGE, index)]
        snapshot = snapshot_of(build_psbt(VAULT, [fund(VAULT, 90_000, salt=index)], outputs, 0), f"p-{index}")
        self.journal.poll(snapshot)
        return snapshot

    def held(self, snapshot: Snapshot) -> bool:
        return "change-index" in self.journal.review(snapshot.psbt_id).to_acknowledge


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
