"""Limits over what the journal knows: across restarts, clocks that go backwards, and ends of proposals; and
against a model that knows nothing of the journal.
"""

import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from custody.schemas.proposals import ProposalStatus
from multisig import ChangeTo, build_psbt, sats
from signerd.core import events
from signerd.core.states import State
from signerd.core.values import Imported, Snapshot
from tests.signerd.journal.test_journal import open_one, prepared
from tests.support.desk import NETWORK, VAULT, judge_again, read_rules, reviewed, signed_by, snapshot_of
from tests.support.examples import examples
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


DAY_LIMIT = 100_000
COINS = 3
AMOUNTS = (20_000, 50_000, 80_000)
ENDS = (
    (ProposalStatus.CANCELLED, 0),
    (ProposalStatus.INVALIDATED, 0),
    (ProposalStatus.CONFIRMED, 5),
    (ProposalStatus.CONFIRMED, 6),
    (ProposalStatus.CONFIRMED, 7),
)
# In the year 2106.
NEVER_OVER = Imported("App", "app-1", 2**32)


@dataclass
class Signed:
    coin: int
    amount: int
    at: datetime


@cache
def proposal(number: int, amount: int, coin: int) -> Snapshot:
    """Every second one is imported by an app: what it pays counts as a proposal's does, and the other way
    round.
    """
    found = paying(amount, number, coin=coin)
    return replace(found, imported=NEVER_OVER) if number % 2 else found


class World:
    """The journal, and beside it the model: what was signed, by the largest time that anything
    was noted at.
    """

    def __init__(self, folder: Path) -> None:
        self.desk = Desk(folder)
        self.seen, self.signed, self.number = NOON, dict[int, Signed](), 0

    def propose(self, amount: int, coin: int) -> None:
        self.number += 1
        snapshot = proposal(self.number, amount, coin)
        refused = self.desk.refused_by(snapshot)
        self.seen = max(self.seen, self.desk.now)
        assert refused == self.expected(amount, coin), (self.desk.now, self.seen, self.signed)
        if not refused:
            assert self.desk.sign(snapshot) is (State.HANDED_OVER if snapshot.imported else State.SIGNED)
            self.signed[self.number] = Signed(coin, amount, self.seen)

    def expected(self, amount: int, coin: int) -> set[str]:
        return {"rule-refuse-per-day"} if self.spent(amount, coin) > DAY_LIMIT else set()

    def spent(self, amount: int, coin: int) -> int:
        """Each proposal spends one coin: of those that spend the same the largest counts, whatever is said of
        its end.
        """
        largest = dict.fromkeys(range(COINS), 0)
        for item in self.signed.values():
            if item.at > self.seen - timedelta(days=1):
                largest[item.coin] = max(largest[item.coin], item.amount)
        largest[coin] = max(largest[coin], amount)
        return sum(largest.values())

    def end(self, number: int, status: ProposalStatus, confirmations: int) -> None:
        record = next((r for r in self.desk.journal.records() if r.psbt_id == f"p-{number}"), None)
        if record is None:
            return
        before = self.desk.journal.head()
        self.desk.journal.poll(replace(record.snapshot, status=status, confirmations=confirmations))
        if self.desk.journal.head() != before:
            self.seen = max(self.seen, self.desk.now)


# Around the windows' ends, and back.
JUMPS = tuple(hours * 60 + minutes for hours in (-30, -5, 1, 23, 24, 143) for minutes in (-1, 0, 1))
PROPOSE = st.tuples(st.just("propose"), st.sampled_from(AMOUNTS), st.integers(0, COINS - 1))
steps = st.lists(
    st.one_of(
        PROPOSE,
        PROPOSE,
        st.tuples(st.just("clock"), st.sampled_from(JUMPS), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 30), st.integers(0, len(ENDS) - 1)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    min_size=20,
    max_size=30,
)


DAY, LARGE, MEDIUM = 24 * 60, 80_000, 50_000


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(steps)
# It leaves the window when it is as old as that, and no minute before.
@example(
    [
        ("propose", LARGE, 0),
        ("clock", DAY - 1, 0),
        ("propose", MEDIUM, 1),
        ("clock", 1, 0),
        ("propose", MEDIUM, 1),
    ]
)
# A clock that is set back frees nothing, and dates nothing back.
@example(
    [
        ("propose", MEDIUM, 0),
        ("clock", -30 * DAY, 0),
        ("propose", LARGE, 1),
        ("propose", 20_000, 1),
        ("clock", 31 * DAY - 60, 0),
        ("restart", 0, 0),
        ("propose", MEDIUM, 2),
    ]
)
# Nor does it count again what had left the window.
@example(
    [
        ("propose", LARGE, 0),
        ("clock", DAY, 0),
        ("propose", 20_000, 1),
        ("clock", -DAY, 0),
        ("propose", MEDIUM, 2),
    ]
)
# Nor does the platform's word about its end, or about a transaction that was not signed here.
@example([("propose", LARGE, 0), ("end", 0, 0), ("propose", MEDIUM, 1)])
@example([("propose", LARGE, 0), ("propose", MEDIUM, 1), ("end", 1, 3), ("propose", MEDIUM, 1)])
def test_f_the_journal_refuses_exactly_what_the_model_refuses(taken: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for step, first, second in taken:
                match step:
                    case "propose":
                        world.propose(first, second)
                    case "clock":
                        world.desk.now += timedelta(minutes=first)
                    case "end":
                        world.end(1 + first % max(1, world.number), *ENDS[second])
                    case _:
                        world.desk.restart()
            assert world.desk.journal.head()[0] >= 3
        finally:
            world.desk.journal.close()
