"""Random lives of families against a model: what is locked, what is counted and what is linked, after every
step (P16, P22).

The model knows one rule: a coin is locked, and its movement counted, while some member holds it.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from secrets import token_bytes

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.limits.stored import OutgoingAmount, usage_of_member, usage_of_vault, usages_of_vaults
from custody.server.proposals.lifecycle import Lifecycle, require_newest, settle_family
from custody.server.requests.changes import Changes
from custody.server.rules.lifecycle import TRANSITIONS, LifecycleEvent
from custody.server.store.models import CoinLockRow, ProposalInputRow, ProposalRow, UserRow
from custody.server.webhooks.events import WebhookEvents
from tests.support.databases import undone
from tests.support.examples import examples
from tests.support.platform import START, Clock, plain_vault
from tests.support.rows import a_proposal
from tests.support.workspaces import found_workspace

COINS = tuple(range(6))
GONE = {"REJECTED", "CANCELLED", "EXPIRED", "INVALIDATED", "FAILED"}
NUMBER = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("new"), st.sets(st.sampled_from(COINS), min_size=1, max_size=3), st.integers(1, 100)),
    st.tuples(st.just("version"), NUMBER, st.sets(st.sampled_from(COINS), max_size=2), st.integers(1, 20)),
    st.tuples(st.just("happens"), NUMBER, NUMBER, st.booleans()),
    st.tuples(st.just("happens"), NUMBER, NUMBER, st.booleans()),
)


@dataclass
class Row:
    id: str
    family: str
    coins: frozenset[int]
    amount: int
    status: str = "PENDING"
    keeps: bool = False

    @property
    def holds(self) -> bool:
        return self.keeps or self.status not in GONE


@dataclass
class Life:
    """The model and the database, step by step."""

    db: Session
    lifecycle: Lifecycle
    workspace_id: int
    rows: list[Row] = field(default_factory=list)

    def take(self, step: tuple) -> None:
        match step:
            case ("new", coins, amount):
                if not coins & self.held():
                    self.propose(Row(self.name(), self.name(), frozenset(coins), amount), None)
            case ("version", which, added, raise_by) if self.rows:
                self.replace(self.rows[which % len(self.rows)], added, raise_by)
            case ("happens", which, what, keep) if self.rows:
                row = self.rows[which % len(self.rows)]
                events = [event for status, event in TRANSITIONS if status == row.status]
                if events:
                    self.happen(row, events[what % len(events)], keep=keep)

    def name(self) -> str:
        return f"p{len(self.rows)}"

    def held(self) -> set[int]:
        return {coin for row in self.rows if row.holds for coin in row.coins}

    def replace(self, first: Row, added: set[int], raise_by: int) -> None:
        """As the use case does it: of the newest living one, with its coins and free ones beside."""
        family = [row for row in self.rows if row.family == first.family]
        later = family[family.index(first) + 1 :]
        if first.status in GONE or any(row.status not in GONE for row in later):
            return
        most = max(row.amount for row in family)
        coins = first.coins | (added - self.held())
        self.propose(Row(self.name(), first.family, frozenset(coins), most + raise_by), first.id)

    def propose(self, row: Row, replaces: str | None) -> None:
        self.rows.append(row)
        stored = proposal(row, replaces, self.workspace_id, len(self.rows))
        self.db.add(stored)
        self.db.flush()
        same = {"proposal_id": row.id, "vout": 0, "amount_sats": 1, "branch": 0, "address_index": 0}
        self.db.add_all(
            ProposalInputRow(input_index=index, txid=txid(coin), **same)
            for index, coin in enumerate(sorted(row.coins))
        )
        settle_family(self.db, stored)

    def happen(self, row: Row, event: LifecycleEvent, *, keep: bool) -> None:
        status = TRANSITIONS[Status(row.status), event]
        stored = self.db.get_one(ProposalRow, row.id)
        if event is LifecycleEvent.CANCEL:
            stored.keeps_coins = row.keeps = keep
        self.lifecycle.apply(self.db, stored, event)
        row.status = status.value
        if row.status not in GONE or event is LifecycleEvent.RELEASED:
            row.keeps = False

    def compare(self) -> None:
        self.compare_locks()
        self.compare_figures()
        for row in self.rows:
            family = [each for each in self.rows if each.family == row.family]
            later = [each for each in family[family.index(row) + 1 :] if each.status not in GONE]
            shown = self.db.get_one(ProposalRow, row.id)
            assert shown.replaced_by_id == (later[0].id if later else None)
            if not later:
                require_newest(self.db, shown)

    def compare_locks(self) -> None:
        locks = {lock.txid: lock.family_id for lock in self.db.scalars(select(CoinLockRow))}
        assert set(locks) == {txid(coin) for coin in self.held()}
        for row_txid, family in locks.items():
            holders = {row.family for row in self.rows if row.holds and row_txid in map(txid, row.coins)}
            assert family in holders, "a lock is of a family that holds the coin"

    def compare_figures(self) -> None:
        counted = [row for row in self.rows if row.holds]
        families = {row.family for row in counted}
        expected = sum(max(row.amount for row in counted if row.family == each) for each in families)
        assert usage_of_vault(self.db, "v", START).used == expected
        every = usages_of_vaults(self.db, {"v": START, "another": START, "later": START + timedelta(days=1)})
        assert [usage.used for usage in every.values()] == [expected, 0, 0]
        assert usage_of_member(self.db, self.workspace_id, 1, START).used == expected
        for enough in (expected - 1, expected, 2 * expected):
            for bound in (
                usage_of_vault(self.db, "v", START, enough=enough),
                usage_of_member(self.db, self.workspace_id, 1, START, enough=enough),
            ):
                assert bound.used >= expected
                assert (bound.used <= enough) is (expected <= enough)
        for each in families:
            largest = max(row.amount for row in counted if row.family == each)
            usage = usage_of_vault(self.db, "v", START, OutgoingAmount(0, START, each))
            assert (usage.held, usage.others) == (largest, expected - largest)


def txid(coin: int) -> str:
    return f"{coin:064x}"


def proposal(row: Row, replaces: str | None, workspace_id: int, number: int) -> ProposalRow:
    return a_proposal(
        row.id, family_id=row.family, workspace_id=workspace_id, fee_sats=row.amount, m=2, n=3,
        movement_sats=row.amount, replaces_id=replaces, at=START + timedelta(seconds=number),
    )  # fmt: skip


@pytest.fixture
def place(store):
    with store.write() as db:
        db.add(UserRow(id=1, email="one@example.org", created_at=START))
        db.flush()
        workspace_id = found_workspace(db, "Main")
        db.add(plain_vault("v", workspace_id))
    return store, workspace_id


def test_locks_reservation_and_links_are_exact_at_every_moment(place) -> None:
    store, workspace_id = place
    clock = Clock(START)
    lifecycle = Lifecycle(clock, Changes(), WebhookEvents(clock, token_bytes))

    @settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(STEPS, min_size=10, max_size=30))
    def live(steps: list[tuple]) -> None:
        with undone(store) as db:
            life = Life(db, lifecycle, workspace_id)
            for step in steps:
                note(str(step))
                life.take(step)
                life.compare()

    live()
