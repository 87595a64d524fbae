"""What a change of rules or limits lets pass that was stopped before."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import Sats
from signerd.core.rules.values import Action, Condition, Rule, RuleKind, Rules
from signerd.core.values import SigningLimits
from signerd.daemon.editing import looser_limits, looser_rules
from tests.support.desk import NETWORK, read_rules

REFUSE = "[refuse]\n"
CASES = {
    "a limit goes up": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_day = "2 BTC"', 1),
    "a limit goes down": (REFUSE + 'above_per_day = "2 BTC"', REFUSE + 'above_per_day = "1 BTC"', 0),
    "a rule goes": (REFUSE + "any_token = true", "", 1),
    "a rule comes": ("", REFUSE + "any_token = true", 0),
    "it only asks": (REFUSE + "always = true", "[ask]\nalways = true", 1),
    "it refuses now": ("[ask]\nalways = true", REFUSE + "always = true", 0),
    "another kind": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_transaction = "1 BTC"', 1),
}


@pytest.mark.parametrize(("old", "new", "looser"), CASES.values(), ids=CASES)
def test_what_lets_more_pass_is_told_and_what_does_not_is_not(old, new, looser):
    found = looser_rules(read_rules(old, NETWORK), read_rules(new, NETWORK), NETWORK)
    assert len(found) == looser


ALWAYS = Condition(RuleKind.ALWAYS)


def test_one_vaults_rule_does_not_stand_for_that_of_all():
    of_all, of_one = (
        Rule(Action.REFUSE, ALWAYS),
        Rule(Action.REFUSE, ALWAYS, "v-1", frozenset({"C"})),
    )
    assert looser_rules(Rules((of_all,)), Rules((of_one,)), NETWORK)
    assert not looser_rules(Rules((of_one,)), Rules((of_all,)), NETWORK)
    other = replace(of_one, codes=frozenset({"D"}))
    assert looser_rules(Rules((of_one,)), Rules((other,)), NETWORK)


LIMITS = st.integers(min_value=0, max_value=10**9).map(Sats)
RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(Action),
        st.builds(Condition, st.sampled_from((RuleKind.PER_TRANSACTION, RuleKind.PER_DAY)), LIMITS),
    ),
    max_size=4,
).map(lambda rules: Rules(tuple(rules)))


@given(RULES, RULES, st.integers(min_value=0, max_value=10**9))
def test_where_nothing_is_told_no_amount_passes_that_was_stopped(old, new, paid):
    """One payment alone, judged by every rule."""

    def stopped(rules: Rules) -> set[Action]:
        met = {rule.action for rule in rules.rules if paid > rule.condition.limit}
        return met | ({Action.ASK} if Action.REFUSE in met else set())

    if not looser_rules(old, new, NETWORK):
        assert stopped(old) <= stopped(new)


def test_each_limit_that_goes_up_is_told():
    low = SigningLimits(max_fee=Sats(1_000), max_fee_percent=1, warn_fee_percent=1)
    high = SigningLimits(max_fee=Sats(2_000), max_fee_percent=2, warn_fee_percent=2)
    assert len(list(looser_limits(low, high))) == 3
    assert list(looser_limits(high, low)) == []
