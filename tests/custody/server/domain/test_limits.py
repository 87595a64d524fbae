"""What a limit lets through, alone (P19, P22) and over random lives of movements, against a model that forgets nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.cycles import Cycle
from custody.server.domain.limits import SpendingPolicy, Usage, fits, in_btc, unused_of
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


@dataclass
class Version:
    family: int
    amount: int
    at: datetime
    can_be_mined: bool = True


@dataclass
class Life:
    """Keeps everything, so that each claim can be counted again from nothing."""

    now: datetime = BEGIN
    policy: SpendingPolicy = PER_CYCLE
    versions: list[Version] = field(default_factory=list)

    def worst(self, versions: Sequence[Version]) -> int:
        """The most that this cycle's proposals can take together: of each family one version is mined at most."""
        start = self.policy.cycle.start(self.now)
        amounts: dict[int, list[int]] = {}
        for version in versions:
            if version.can_be_mined and version.at >= start:
                amounts.setdefault(version.family, []).append(version.amount)
        return sum(map(max, amounts.values()))

    @property
    def used(self) -> int:
        return self.worst(self.versions)

    def usage(self, family: int) -> Usage:
        """As a database sums it: the others, and the family."""
        return Usage(
            others=self.worst([version for version in self.versions if version.family != family]),
            held=self.worst([version for version in self.versions if version.family == family]),
        )

    def propose(self, amount: int, family: int | None) -> None:
        known = {version.family for version in self.versions}
        version = Version(
            family if family is not None and family in known else len(self.versions), amount, self.now
        )
        before, after = self.used, self.worst([*self.versions, version])
        passes = fits(self.policy, self.usage(version.family), amount)
        # Never overspent, and nothing refused that would have fitted.
        assert passes is (after == before or after <= self.policy.limit)
        if passes:
            self.versions.append(version)
            assert self.used == after


@given(st.lists(STEPS, max_size=40))
def test_no_life_of_movements_spends_more_than_the_limit(steps):
    life = Life()
    for kind, what, family in steps:
        if kind == "propose":
            life.propose(what, family)
        elif kind == "end" and life.versions:
            life.versions[what % len(life.versions)].can_be_mined = False
        elif kind == "limit":
            life.policy = replace(life.policy, limit=Sats(what))
        elif kind == "wait":
            life.now += timedelta(hours=what)
        elif kind == "cycle":
            life.policy = replace(life.policy, cycle=Cycle(*what))
        left = unused_of(life.policy.limit, life.used)
        assert life.used + left == max(life.used, life.policy.limit)
