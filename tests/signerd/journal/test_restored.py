"""A journal that was restored: careful until it has caught up."""

from dataclasses import replace

import pytest

from multisig import Psbt
from signerd.core.audit import first_fault
from signerd.core.events import Answered, Approved, Exported, Refused
from signerd.core.states import State
from signerd.errors import IllegalEvent, NotCaughtUp
from tests.signerd.journal.test_journal import NOW, open_one, prepared
from tests.support.backups import approve
from tests.support.desk import VAULT, signed_by
from tests.support.payments import shop
from tests.support.wallets import ALICE, BOB


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
    found = journal.review(psbt_id)
    return journal.decide(psbt_id, Approved(found.digest, found.to_acknowledge))


def with_our_signature(coins, psbt_id, signer=ALICE):
    snapshot = shop(coins, psbt_id=psbt_id)
    return replace(snapshot, psbt=signed_by(signer, snapshot), collected=1)


def test_approvals_lapse_and_the_chain_goes_on(folder):
    with open_one(folder) as journal:
        assert journal.record("p-1").state is State.WAITING_PERSON
        assert journal.record("p-1").approval is None
        assert first_fault(journal.audit()) is None
        assert "restored" in [entry.note.kind for entry in journal.audit()]
        assert journal.unfollowed.heard_until(1, frozenset()) is None


def test_nothing_is_approved_before_the_list_was_read(folder):
    with open_one(folder) as journal:
        assert journal.behind() == {1}
        with pytest.raises(NotCaughtUp, match="workspace 1"):
            yes(journal, "p-1")
        journal.caught_up(1, [VAULT.verification_code])
        assert journal.behind() == frozenset()
        assert yes(journal, "p-1").record.state is State.WAITING_DEVICE
    with open_one(folder) as journal:
        assert journal.behind() == frozenset()


def test_a_vault_that_no_look_since_the_restore_covered_is_behind(folder):
    with open_one(folder) as journal:
        journal.caught_up(1, ["another code"])
        assert journal.behind() == {1}
        journal.caught_up(2, [VAULT.verification_code])
        assert journal.behind() == {1}


def test_a_second_restore_is_careful_again(folder):
    with open_one(folder) as journal:
        journal.caught_up(1, [VAULT.verification_code])
        journal.restore(NOW)
    with open_one(folder) as journal:
        assert journal.behind() == {1}


def test_without_a_restore_there_is_nothing_to_catch_up(tmp_path):
    with prepared(tmp_path) as journal:
        assert (journal.restored, journal.behind()) == (None, frozenset())
        journal.caught_up(1, [VAULT.verification_code])
        assert "caught-up" not in [entry.note.kind for entry in journal.audit()]


def test_what_was_signed_since_counts_as_signed_for_the_same_payment_and_for_limits(folder):
    with open_one(folder) as journal:
        step = journal.recall(with_our_signature((2,), "p-2"))
        assert step.record.state is State.SUBMITTED
        journal.caught_up(1, [VAULT.verification_code])
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "paid-twice" in journal.review("p-3").to_acknowledge
        assert [spent.psbt_id for spent in journal._book.spent()] == ["p-2"]
        assert journal.recall(with_our_signature((2,), "p-2")) is None


def test_one_with_a_part_of_our_signatures_is_set_aside_and_counts_as_signed(folder):
    with open_one(folder) as journal:
        shown = shop((1, 2), psbt_id="p-2")
        part = ALICE.sign(Psbt.parse(shown.psbt), inputs=[0]).to_bytes()
        record = journal.recall(replace(shown, psbt=part, collected=1)).record
        assert record.state is State.QUARANTINED
        assert "none for inputs 1" in record.reason
        journal.caught_up(1, [VAULT.verification_code])
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "paid-twice" in journal.review("p-3").to_acknowledge
        assert [spent.psbt_id for spent in journal._book.spent()] == ["p-2"]
        with pytest.raises(IllegalEvent):
            journal.decide("p-2", Refused("no"))


def test_one_that_is_known_as_waiting_is_signed_then(folder):
    with open_one(folder) as journal:
        assert journal.recall(with_our_signature((1,), "p-1")).record.state is State.SUBMITTED


@pytest.fixture
def exported(tmp_path):
    """A proposal was given out for a device without a cable before the backup."""
    with prepared(tmp_path) as journal:
        approve(journal, shop((1,), psbt_id="p-1"))
        journal.decide("p-1", Exported())
        journal.restore(NOW)
    return tmp_path


def test_what_was_exported_still_is_and_its_answer_waits_for_the_list(exported):
    answer = Answered(with_our_signature((1,), "p-1").psbt)
    with open_one(exported) as journal:
        assert journal.record("p-1").state is State.EXPORTED
        with pytest.raises(NotCaughtUp):
            journal.decide("p-1", answer)
        journal.poll(shop((3,), psbt_id="p-3"))
        assert "paid-twice" in journal.review("p-3").to_acknowledge
        journal.caught_up(1, [VAULT.verification_code])
        assert journal.decide("p-1", answer).record.signature is not None


def test_an_answer_that_was_brought_after_the_backup_is_recalled(exported):
    with open_one(exported) as journal:
        record = journal.recall(with_our_signature((1,), "p-1")).record
        assert (record.state, record.signature is not None) == (State.SUBMITTED, True)


def test_what_others_signed_is_left_to_be_heard(folder):
    with open_one(folder) as journal:
        assert journal.recall(with_our_signature((2,), "p-2", BOB)) is None
        assert not journal.is_followed("p-2")
