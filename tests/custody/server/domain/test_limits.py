"""What a limit lets through, alone (P19, P22) and over random lives of movements, against a model that forgets nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.cycles import Cycle
from custody.server.domain.limits import Reservation, SpendingPolicy, Usage, fits, in_btc, unused_of, used_of
from multisig import MAX_MONEY, Sats, format_btc

MONTHLY = Cycle("M", 1)
PER_CYCLE = SpendingPolicy(Sats(100), MONTHLY)
PER_MOVEMENT = SpendingPolicy(Sats(100), MONTHLY, is_per_cycle=False)


@pytest.mark.parametrize(
    ("policy", "usage", "requested", "passes"),
    [
        (PER_CYCLE, Usage(0), 100, True),
        (PER_CYCLE, Usage(0), 101, False),
        (PER_CYCLE, Usage(40), 60, True),
        (PER_CYCLE, Usage(40), 61, False),
        (PER_CYCLE, Usage(100), 1, False),
        (PER_MOVEMENT, Usage(10**18), 100, True),
        (PER_MOVEMENT, Usage(0), 101, False),
        (SpendingPolicy(Sats(0), MONTHLY), Usage(0), 1, False),
    ],
)
def test_p19_equal_to_the_limit_passes_and_one_more_does_not(policy, usage, requested, passes):
    assert fits(policy, usage, requested) is passes


@pytest.mark.parametrize(
    ("usage", "requested", "passes"),
    [
        (Usage(40, held=60), 60, True),
        (Usage(40, held=50), 60, True),
        (Usage(40, held=50), 61, False),
        # Lowered to 100 while 150 were reserved: what raises nothing passes, what raises does not (P22).
        (Usage(0, held=150), 150, True),
        (Usage(0, held=150), 151, False),
        (Usage(120, held=30), 5, True),
        (Usage(120, held=30), 31, False),
    ],
)
def test_a_family_counts_once_for_its_largest_version(usage, requested, passes):
    assert fits(PER_CYCLE, usage, requested) is passes


def test_versions_of_one_movement_are_summed_once():
    versions = [Reservation("a", 5), Reservation("b", 7), Reservation("a", 9), Reservation("a", 1)]
    assert used_of(versions) == 16
    assert used_of([]) == 0


def test_what_is_over_used_leaves_nothing():
    assert (unused_of(10, 4), unused_of(10, 10), unused_of(10, 11)) == (6, 0, 0)


def test_a_sum_of_movements_may_exceed_all_there_is():
    assert in_btc(3 * MAX_MONEY) == "63000000.00000000"
    assert in_btc(123) == format_btc(Sats(123)) == "0.00000123"


# --- random lives ------------------------------------------------------------------------------------------------------

BEGIN = datetime(2024, 1, 30, 22, tzinfo=UTC)
STEPS = st.one_of(
    st.tuples(st.just("propose"), st.integers(1, 120), st.none() | st.integers(0, 5)),
    st.tuples(st.just("end"), st.integers(0, 20), st.none()),
    st.tuples(st.just("limit"), st.sampled_from([0, 50, 100, 150]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, 2, 24, 24 * 6, 24 * 29]), st.none()),
    st.tuples(st.just("cycle"), st.sampled_from([("W", 1), ("W", 4), ("M", 1), ("M", 29), ("M", 31)]), st.none()),
)  # fmt: skip


class Life:
    """Decides with the rule, and keeps everything, so that each claim can be counted again from nothing."""

    def __init__(self) -> None:
        self.now, self.limit, self.cycle = BEGIN, 100, Cycle("M", 1)
        self.versions: list[dict] = []

    def standing(self, family: int | None = None, *, but: bool = False) -> list[Reservation]:
        """Of the current cycle: all, one family, or all but it."""
        start = self.cycle.start(self.now)
        rows = [row for row in self.versions if row["standing"] and row["at"] >= start]
        chosen = [row for row in rows if family is None or (row["family"] == family) is not but]
        return [Reservation(str(row["family"]), row["amount"]) for row in chosen]

    def propose(self, amount: int, family: int | None) -> bool:
        known = family is not None and any(row["family"] == family for row in self.versions)
        if not known:
            family = len(self.versions)
        usage = Usage(used_of(self.standing(family, but=True)), used_of(self.standing(family)))
        passes = fits(SpendingPolicy(Sats(self.limit), self.cycle), usage, amount)
        if passes:
            self.versions.append({"family": family, "amount": amount, "at": self.now, "standing": True})
        return passes

    def could_be_mined(self) -> int:
        """The most that this cycle's proposals can take together: by trying, of each family, every version."""
        start, most = self.cycle.start(self.now), {}
        for row in self.versions:
            if row["standing"] and row["at"] >= start:
                most.setdefault(row["family"], []).append(row["amount"])
        return sum(max(amounts) for amounts in most.values())


@given(st.lists(STEPS, max_size=40))
def test_no_life_of_movements_spends_more_than_the_limit(steps):
    life = Life()
    for kind, what, family in steps:
        before = life.could_be_mined()
        if kind == "propose":
            passed = life.propose(what, family)
            after = life.could_be_mined()
            # Nothing that raises the sum passes above the limit, and nothing is refused that would have fitted.
            assert after == before or after <= life.limit
            assert passed or after == before
            if not passed:
                life.versions.append({"family": family if family is not None and any(r["family"] == family for r in life.versions) else -1,
                                      "amount": what, "at": life.now, "standing": True})  # fmt: skip
                assert life.could_be_mined() > life.limit
                life.versions.pop()
        elif kind == "end" and life.versions:
            life.versions[what % len(life.versions)]["standing"] = False
        elif kind == "limit":
            life.limit = what
        elif kind == "wait":
            life.now += timedelta(hours=what)
        elif kind == "cycle":
            life.cycle = Cycle(*what)
        assert used_of(life.standing()) == life.could_be_mined()
        assert unused_of(life.limit, life.could_be_mined()) == max(0, life.limit - life.could_be_mined())
