"""S6 over a real journal: whatever is proposed, signed, declared and lied about, nothing is paid twice
unasked.

Beside the journal runs a model that knows of coins, payees and fees only, and no PSBT.
"""

import contextlib
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from custody.schemas.proposals import ProposalStatus
from multisig import Psbt, estimate_vsize
from signerd.core import events
from signerd.core.states import State
from signerd.core.values import Snapshot
from signerd.errors import DecisionError
from signerd.journal import Journal
from tests.signerd.journal.test_journal import open_one, prepared
from tests.support.desk import VAULT, reviewed, signed_by, snapshot_of
from tests.support.examples import examples
from tests.support.payments import spend_of
from tests.support.wallets import ALICE

PAID = ((), (("shop", 50_000),), (("shop", 50_000), ("cafe", 20_000)), (("cafe", 20_000),))
FEES = (1_000, 1_010, 2_000, 5_000)
ASKED = frozenset({"paid-twice", "conflict", "replacement"})
OUT = frozenset({State.BROADCAST, State.CONFIRMED})


@dataclass(frozen=True)
class Plan:
    """What a proposal is, in the model's words."""

    coins: frozenset[int]
    paid: tuple[tuple[str, int], ...]
    fee: int
    replaces: str | None

    @property
    def size(self) -> int:
        scripts = [output.script_pubkey for output in psbt_of(self.coins, self.paid, self.fee).outputs]
        return estimate_vsize(VAULT, len(self.coins), scripts)

    def only_bumps(self, first: "Plan") -> bool:
        dearer = self.fee > first.fee and self.fee * first.size > first.fee * self.size
        return self.paid == first.paid and self.coins >= first.coins and dearer


@cache
def psbt_of(coins: frozenset[int], paid: tuple[tuple[str, int], ...], fee: int) -> Psbt:
    return spend_of(sorted(coins), paid, fee)


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal: Journal = prepared(folder)
        self.plans: dict[str, Plan] = {}
        self.signed: list[str] = []
        # In the order in which devices were asked, the last time each.
        self.asked: list[str] = []
        # Given out for a device without a cable: it may be signed for good.
        self.exported: set[str] = set()

    # --- what happens ---------------------------------------------------------------------------------------

    def propose(self, coins: frozenset[int], paid: int, fee: int, replaces: int | None) -> None:
        psbt_id = f"p-{len(self.plans)}"
        named = None if replaces is None else f"p-{replaces}"
        self.plans[psbt_id] = plan = Plan(coins, PAID[paid], FEES[fee], named)
        self.journal.poll(snapshot_of(psbt_of(plan.coins, plan.paid, plan.fee), psbt_id, replaces=named))
        self.compare(psbt_id)

    def approve(self, psbt_id: str, acknowledge: frozenset[str]) -> None:
        found = reviewed(self.journal, psbt_id)
        self.journal.decide(psbt_id, events.Approved(found.digest, acknowledge))

    def ask_device(self, psbt_id: str) -> None:
        step = self.journal.decide(psbt_id, events.DeviceFound("d"))
        if step.record.state is State.SIGNING:
            self.asked = [*(name for name in self.asked if name != psbt_id), psbt_id]

    def export(self, psbt_id: str) -> None:
        step = self.journal.decide(psbt_id, events.Exported())
        if step.record.exported is not None and psbt_id not in self.exported:
            self.exported.add(psbt_id)
            self.asked.append(psbt_id)

    def decline(self, psbt_id: str) -> None:
        self.journal.decide(psbt_id, events.PersonDeclined("no"))

    def return_signatures(self, psbt_id: str) -> None:
        self.take_signatures(psbt_id, events.DeviceReturned)

    def bring_answer(self, psbt_id: str) -> None:
        self.take_signatures(psbt_id, events.AnswerImported)

    def take_signatures(
        self, psbt_id: str, kind: type[events.DeviceReturned | events.AnswerImported]
    ) -> None:
        record = self.journal.record(psbt_id)
        step = self.journal.decide(psbt_id, kind(signed_by(ALICE, record.snapshot)))
        if step.record.signature is not None:
            self.require_asked(psbt_id)
            self.signed.append(psbt_id)

    def whole_way(self, psbt_id: str, acknowledge: frozenset[str]) -> None:
        self.approve(psbt_id, acknowledge)
        self.ask_device(psbt_id)
        self.return_signatures(psbt_id)

    def lie(self, psbt_id: str, status: ProposalStatus, replaces: str | None) -> None:
        """The platform may say anything, again and otherwise."""
        known: Snapshot = self.journal.record(psbt_id).snapshot
        said = replace(known, status=status, confirmations=100, replaces=replaces)
        self.journal.poll(said)
        now = self.journal.record(psbt_id).snapshot.replaces
        self.plans[psbt_id] = replace(self.plans[psbt_id], replaces=now)

    def restart(self) -> None:
        self.journal.close()
        self.journal = open_one(self.folder)
        self.journal.restart()

    # --- what must hold -------------------------------------------------------------------------------------

    def require_asked(self, psbt_id: str) -> None:
        """Signed without a word of the person: no payment that a signed one may make beside it, and no odd
        rival of one.

        Of two it is the one whose device was asked later that the person is asked about: the other counts
        from then on, whichever device answers first.
        """
        for other in self.signed:
            first, second = sorted((psbt_id, other), key=self.asked.index)
            self.require_word(self.plans[first], self.plans[second], self.acknowledged(second))

    def acknowledged(self, psbt_id: str) -> frozenset[str]:
        approval = self.journal.record(psbt_id).approval
        assert approval is not None
        return approval.acknowledged

    def require_word(self, first: Plan, second: Plan, acknowledged: frozenset[str]) -> None:
        if second.coins.isdisjoint(first.coins):
            assert set(second.paid).isdisjoint(first.paid) or "paid-twice" in acknowledged
        elif second.paid and not second.only_bumps(first):
            assert "conflict" in acknowledged

    def compare(self, psbt_id: str) -> None:
        """The holds are exactly the model's, and each names all that it is about."""
        found = reviewed(self.journal, psbt_id)
        assert found.inspection is not None
        held = {
            v.name: set(str(v.figures.get("proposals", "")).split(", "))
            for v in found.verdicts
            if v.acknowledge
        }
        this = self.plans[psbt_id]
        # Nothing replaces itself: it is as if it named one that is not known.
        named = self.plans.get(this.replaces or "") if this.replaces != psbt_id else None
        twice = {n for n in self.leaving(psbt_id) if self.pays_again(this, self.plans[n])}
        rivals = {n for n in self.leaving(psbt_id) if self.is_odd_rival(this, named, self.plans[n])}
        assert held.get("paid-twice", set()) == twice
        assert held.get("conflict", set()) == rivals
        assert ("replacement" in held) is (this.replaces is not None and named is None)
        refused = {v.name for v in found.refusals}
        assert ("replacement" in refused) is self.lies_of_replacing(this, named)

    def leaving(self, psbt_id: str) -> set[str]:
        """What may confirm: what was signed or exported, for ever; what a device works on; what the others
        are said to have completed.
        """
        states = {record.psbt_id: record.state for record in self.journal.records()}
        return {
            name
            for name, state in states.items()
            if name != psbt_id
            and (name in self.signed or name in self.exported or state is State.SIGNING or state in OUT)
        }

    def pays_again(self, this: Plan, other: Plan) -> bool:
        return this.coins.isdisjoint(other.coins) and bool(set(this.paid) & set(other.paid))

    def is_odd_rival(self, this: Plan, named: Plan | None, other: Plan) -> bool:
        if this.coins.isdisjoint(other.coins) or not this.paid:
            return False
        return named is None or not (this.only_bumps(named) and this.only_bumps(other))

    def lies_of_replacing(self, this: Plan, named: Plan | None) -> bool:
        if named is None:
            return False
        return not this.only_bumps(named) if this.paid else this.coins.isdisjoint(named.coins)


COINS = st.frozensets(st.integers(1, 3), min_size=1, max_size=3)
WHICH = st.integers(0, 30)
ACKNOWLEDGED = st.sampled_from([frozenset(), frozenset(), ASKED])
PROPOSE = st.tuples(
    st.just("propose"),
    st.tuples(COINS, st.integers(0, 3), st.integers(0, 3), st.sampled_from([None, 0, 1, 2, 3, 4, 77])),
)
steps = st.lists(
    st.one_of(
        PROPOSE,
        # The same payment again, most often said to replace one that came before.
        st.tuples(st.just("propose"), st.tuples(COINS, st.just(1), st.integers(0, 3), st.integers(0, 3))),
        st.tuples(st.just("asked"), st.tuples(WHICH)),
        st.tuples(st.just("whole"), st.tuples(WHICH, ACKNOWLEDGED)),
        st.tuples(st.just("whole"), st.tuples(WHICH, ACKNOWLEDGED)),
        st.tuples(st.just("approve"), st.tuples(WHICH, ACKNOWLEDGED)),
        st.tuples(st.just("device"), st.tuples(WHICH)),
        st.tuples(st.just("returned"), st.tuples(WHICH)),
        st.tuples(st.just("exported"), st.tuples(WHICH, ACKNOWLEDGED)),
        st.tuples(st.just("answered"), st.tuples(WHICH)),
        st.tuples(st.just("declined"), st.tuples(WHICH)),
        st.tuples(
            st.just("lie"),
            st.tuples(WHICH, st.sampled_from(ProposalStatus), st.sampled_from([None, "p-0", "p-1", "p-77"])),
        ),
        st.tuples(st.just("restart"), st.just(())),
    ),
    min_size=15,
    max_size=30,
)


def approve_and_ask(world: World, psbt_id: str) -> None:
    world.approve(psbt_id, ASKED)
    world.ask_device(psbt_id)


def approve_and_export(world: World, psbt_id: str, acknowledge: frozenset[str]) -> None:
    world.approve(psbt_id, acknowledge)
    world.export(psbt_id)


ACTS = {
    "whole": World.whole_way,
    "approve": World.approve,
    "asked": approve_and_ask,
    "device": World.ask_device,
    "returned": World.return_signatures,
    "exported": approve_and_export,
    "answered": World.bring_answer,
    "declined": World.decline,
    "lie": World.lie,
}


def take(world: World, what: str, told: tuple) -> None:
    if what == "propose":
        world.propose(*told)
        return
    if what == "restart":
        world.restart()
        return
    if not world.plans:
        return
    psbt_id = f"p-{told[0] % len(world.plans)}"
    # Most of what may happen may not happen now.
    with contextlib.suppress(DecisionError):
        ACTS[what](world, psbt_id, *told[1:])
    world.compare(psbt_id)


def while_at_the_device(
    coins: frozenset[int], paid: int, acknowledge: frozenset[str]
) -> list[tuple[str, tuple]]:
    """The second is signed while the first one's device still works; then that one answers."""
    return [
        ("propose", (frozenset([1]), 1, 0, None)),
        ("asked", (0,)),
        ("propose", (coins, paid, 1, None)),
        ("whole", (1, acknowledge)),
        ("returned", (0,)),
    ]


def while_on_the_card(coins: frozenset[int], acknowledge: frozenset[str]) -> list[tuple[str, tuple]]:
    """The second is signed while the first one is exported and declined; or is, and then it is answered."""
    return [
        ("propose", (frozenset([1]), 1, 0, None)),
        ("exported", (0, frozenset())),
        ("propose", (coins, 1, 1, None)),
        ("whole", (1, acknowledge)),
        ("answered", (0,)),
        ("declined", (0,)),
        ("restart", ()),
        ("propose", (frozenset([3]), 1, 2, None)),
        ("whole", (2, frozenset())),
    ]


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(steps)
# A cancel, which passes without a word, and the same payment from another coin, which does not.
@example(while_at_the_device(frozenset([1]), 0, frozenset()))
@example(while_at_the_device(frozenset([2]), 1, ASKED))
@example(while_on_the_card(frozenset([2]), frozenset()))
@example(while_on_the_card(frozenset([2]), ASKED))
def test_s6_no_sequence_pays_twice_without_a_word_of_the_person(taken: list[tuple[str, tuple]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for what, told in taken:
                take(world, what, told)
        finally:
            world.journal.close()
