"""Limits over what the journal knows: across restarts, clocks that go backwards, and ends of proposals."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from multisig import ChangeTo, build_psbt, sats
from signerd.core import events
from signerd.core.states import State
from signerd.core.values import Snapshot
from tests.signerd.journal.test_journal import open_one, prepared
from tests.support.desk import NETWORK, VAULT, judge_again, read_rules, reviewed, signed_by, snapshot_of
from tests.support.wallets import ALICE, fund, pay

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
RULES = read_rules('[refuse]\nabove_per_day = "100000 sat"\n', NETWORK)


class Desk:
    """A journal under rules, with a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.fails_at = folder, NOON, ""
        self.journal = prepared(self.folder, **self._options())

    def _options(self) -> dict[str, object]:
        return {"rules": RULES, "now": lambda: self.now, "fault": self._fault}

    def _fault(self, point: str) -> None:
        if point == self.fails_at:
            raise OSError("no space")

    def restart(self) -> None:
        self.journal.close()
        self.journal = open_one(self.folder, **self._options())

    def sign(self, snapshot: Snapshot) -> State:
        self.to_device(snapshot)
        self.journal.decide(snapshot.psbt_id, events.DeviceFound("d"))
        return self.journal.decide(
            snapshot.psbt_id, events.DeviceReturned(signed_by(ALICE, snapshot))
        ).record.state

    def to_device(self, snapshot: Snapshot) -> None:
        self.journal.poll(snapshot)
        judge_again(self.journal)
        found = reviewed(self.journal, snapshot.psbt_id)
        self.journal.decide(snapshot.psbt_id, events.Approved(found.digest, found.to_acknowledge))

    def refused_by(self, snapshot: Snapshot) -> set[str]:
        self.journal.poll(snapshot)
        return {verdict.name for verdict in reviewed(self.journal, snapshot.psbt_id).refusals}


def paying(amount: int, number: int, coin: int | None = None, fee: int = 1_000) -> Snapshot:
    coins = [fund(VAULT, 300_000, salt=number if coin is None else coin)]
    outputs = [pay(amount, f"shop {number}"), ChangeTo(sats(300_000 - amount - fee), 1, number)]
    return snapshot_of(build_psbt(VAULT, coins, outputs, 0), f"p-{number}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    yield made
    made.journal.close()


def test_two_approvals_that_only_together_break_a_limit_are_not_both_signed(desk: Desk) -> None:
    first, second = paying(60_000, 1), paying(60_000, 2)
    desk.to_device(first)
    desk.to_device(second)
    desk.journal.decide("p-1", events.DeviceFound("d"))
    # The first one is still at its device: it counts already.
    assert desk.journal.decide("p-2", events.DeviceFound("e")).record.state is State.REFUSED
    desk.journal.decide("p-1", events.NoSignature("refused-by-person", "No.", asked=True))
    judge_again(desk.journal)
    assert desk.journal.record("p-2").state is State.WAITING_PERSON


def test_f_what_a_rolled_back_decision_would_have_spent_does_not_count(desk: Desk) -> None:
    first = paying(60_000, 1)
    desk.to_device(first)
    desk.journal.decide("p-1", events.DeviceFound("d"))
    desk.fails_at = "journal:before:DeviceReturned"
    with pytest.raises(OSError, match="no space"):
        desk.journal.decide("p-1", events.DeviceReturned(signed_by(ALICE, first)))
    desk.fails_at = ""
    assert desk.refused_by(paying(60_000, 2)) == {"rule-refuse-per-day"}
    desk.journal.decide("p-1", events.NoSignature("disconnected", "Gone.", asked=True))
    assert desk.refused_by(paying(60_000, 2)) == set()


@pytest.mark.parametrize("declined", [False, True])
def test_what_was_exported_counts_whatever_became_of_it(desk, declined):
    first = paying(60_000, 1)
    desk.to_device(first)
    desk.journal.decide("p-1", events.Exported())
    if declined:
        desk.journal.decide("p-1", events.PersonDeclined("no"))
    desk.restart()
    assert desk.refused_by(paying(40_001, 2)) == {"rule-refuse-per-day"}
    assert desk.refused_by(paying(30_000, 3)) == set()
