"""What a platform can make the journal keep has an end, and what this person decided has none of
its own (F).
"""

from dataclasses import replace

import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.core.events import Approved, Exported, PersonDeclined
from signerd.core.states import State
from signerd.core.values import Snapshot, identity_of
from signerd.errors import PlatformFloods, UnknownProposal
from signerd.journal import Journal, quota
from signerd.journal.quota import BYTES_OF_ONE, MOST_WORK, WORK_OF_A_WORD, work_of
from tests.signerd.journal.test_journal import HONEST
from tests.support.desk import CLAIM, VAULT, VAULT_ID, reviewed


def proposal(number: int, **changes: object) -> Snapshot:
    return replace(HONEST, psbt_id=f"p-{number}", **changes)


def rows(journal: Journal, table: str) -> int:
    return int(journal._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def flood(journal: Journal, numbers: range, **changes: object) -> int:
    """How many were taken."""
    taken = 0
    for number in numbers:
        try:
            journal.poll(proposal(number, **changes))
        except PlatformFloods:
            continue
        taken += 1
    return taken


def test_f_open_proposals_have_an_end_and_what_ends_makes_room(journal, monkeypatch):
    monkeypatch.setattr(quota, "MOST", 10)
    assert flood(journal, range(1, 30)) == 10
    assert rows(journal, "proposals") == 10
    journal.poll(proposal(3, status=ProposalStatus.EXPIRED))
    assert flood(journal, range(30, 40)) == 1
    # What is known is followed on, however many there are.
    journal.poll(proposal(4, description="said otherwise"))
    assert journal.record("p-4").snapshot.description == "said otherwise"


def test_f_open_proposals_are_no_more_bytes_than_fit_in_memory(journal, monkeypatch):
    monkeypatch.setattr(quota, "MOST_OPEN_WORK", 10 * work_of(HONEST))
    assert flood(journal, range(1, 60)) == 10
    journal.poll(proposal(3, status=ProposalStatus.EXPIRED))
    assert flood(journal, range(60, 70)) == 1
    # Nor does what is known grow beyond that, with data that no check reads.
    magic, rest = HONEST.psbt[:5], HONEST.psbt[5:]
    size = BYTES_OF_ONE
    padded = magic + b"\x02\xef\x00\xfd" + size.to_bytes(2, "little") + bytes(size) + rest
    assert identity_of(padded) == identity_of(HONEST.psbt)
    assert flood(journal, range(4, 10), psbt=padded) == 0
    assert flood(journal, range(4, 10), description="x" * size) == 0
    assert rows(journal, f"(SELECT 1 FROM proposals WHERE length(psbt) > {size})") == 0


def test_f_kept_proposals_have_an_end_and_those_that_are_over_make_room(journal, monkeypatch):
    monkeypatch.setattr(quota, "MOST_WORK", 10 * work_of(HONEST))
    monkeypatch.setattr(quota, "FORGOTTEN_AT_ONCE", 2)
    for number in range(60):
        flood(journal, range(number, number + 1))
        flood(journal, range(number, number + 1), status=ProposalStatus.EXPIRED)
    assert 4 < rows(journal, "proposals") < 15
    assert journal.record("p-59").state is State.EXPIRED
    with pytest.raises(UnknownProposal):
        journal.record("p-0")
    for table in ("spends", "outputs"):
        assert rows(journal, f"(SELECT DISTINCT psbt_id FROM {table})") == rows(journal, "proposals")
    assert any(entry.note.kind == "forgotten" for entry in journal.audit())


@pytest.mark.parametrize("ends", [ProposalStatus.EXPIRED, ProposalStatus.CONFIRMED])
def test_f_what_was_decided_or_may_have_been_paid_is_never_forgotten(journal, monkeypatch, ends):
    journal.poll(proposal(1))
    if ends is ProposalStatus.EXPIRED:
        journal.decide("p-1", PersonDeclined("no"))
    journal.poll(proposal(1, status=ends, confirmations=6))
    # Room for it alone: it would make room for another.
    monkeypatch.setattr(quota, "MOST_WORK", work_of(HONEST))
    assert flood(journal, range(2, 5)) == 0
    assert journal.record("p-1").snapshot.status is ends


def test_f_a_platform_that_says_something_new_for_ever_is_heard_so_often_a_day(journal):
    journal._quota.undecided.size = 50 * WORK_OF_A_WORD
    told = 0
    for number in range(200):
        try:
            told += bool(journal.learn(replace(CLAIM, name=f"Treasury {number}")))
        except PlatformFloods:
            break
    assert 40 < told <= 50
    length, _ = journal.head()
    with pytest.raises(PlatformFloods, match="new in a day"):
        journal.poll(proposal(1))
    assert journal.head()[0] == length
    # What was said before is no news, and a change of a pinned vault is told whatever else was said.
    assert not journal.learn(replace(CLAIM, name=f"Treasury {told - 1}"))
    assert journal.learn(replace(CLAIM, threshold=3))


def test_f_the_end_of_what_was_decided_is_heard_through_a_flood(journal, monkeypatch):
    journal.poll(proposal(1))
    journal.decide("p-1", PersonDeclined("no"))
    journal._quota.undecided.size = 0
    with pytest.raises(PlatformFloods):
        journal.poll(proposal(2))
    monkeypatch.setattr(quota, "MOST_WORK", 1)
    longer = "x" * BYTES_OF_ONE
    journal.poll(proposal(1, status=ProposalStatus.CONFIRMED, confirmations=1, description=longer))
    assert journal.record("p-1").state is State.CONFIRMED


def test_f_vaults_and_changes_of_one_have_an_end(journal, monkeypatch):
    monkeypatch.setattr(quota, "MOST", 5)
    monkeypatch.setattr(quota, "MOST_CHANGES", 4)
    learnt = 0
    for number in range(10):
        try:
            learnt += bool(journal.learn(replace(CLAIM, vault_id=f"vault-{number + 2}")))
        except PlatformFloods:
            continue
    assert (learnt, len(journal.claims())) == (4, 5)
    for number in range(10):
        journal.learn(replace(CLAIM, first_address=VAULT.address(0, number + 1)))
    assert rows(journal, "vault_changes") == 4
    assert journal.changes_of(journal.pin(VAULT_ID))


def test_what_may_be_said_comes_back_evenly_and_a_clock_set_back_gives_nothing(journal):
    def taken(at: float) -> int:
        for count in range(MOST_WORK):
            try:
                journal._quota.require_word(None, at)
            except PlatformFloods:
                return count
        raise AssertionError("it has no end")

    a_day = MOST_WORK // WORK_OF_A_WORD
    assert taken(1e10) == a_day
    assert taken(1e10 + 3_600.0) == a_day // 24
    assert taken(-1e10) == 0
    assert taken(1e11) == a_day


def test_s6_what_was_exported_takes_no_room_and_is_never_forgotten(journal, monkeypatch):
    monkeypatch.setattr(quota, "MOST", 2)
    journal.poll(proposal(1))
    journal.decide("p-1", Approved(reviewed(journal, "p-1").digest))
    journal.decide("p-1", Exported())
    journal.poll(proposal(1, status=ProposalStatus.EXPIRED))
    assert flood(journal, range(2, 10)) == 2
    assert journal.record("p-1").exported is not None
