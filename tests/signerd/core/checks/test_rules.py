"""What the rules say of a proposal, of tokens too; that no rule ever lets anything pass; and what counts as
spent, against a model that tries every way in which signed transactions can confirm.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import RECEIVE, OutPoint, sats
from multisig.tokens import Function, Payload
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.checks.table import LOWERABLE
from signerd.core.review import review
from signerd.core.rules.values import Action, Condition, Rule, RuleKind, Rules, Spent, worst_case
from signerd.core.states import State
from signerd.core.values import Neighbour, ReviewContext
from tests.support.desk import VAULT, VAULT_ID, review_context, snapshot_of, spend
from tests.support.examples import examples
from tests.support.tokens import GOLD, HOLDER, call, token_snapshot
from tests.support.wallets import pay

CODE = VAULT.verification_code
OURS = frozenset({CODE})
OTHER = frozenset({"another"})
# A Friday.
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
# Pays 50,000 satoshis to a shop, out of 200,000.
HONEST = snapshot_of(spend())
SHOP = pay(50_000).script_pubkey


def context(*rules: Rule, **changes: object) -> ReviewContext:
    return review_context(**{"rules": Rules(rules), "moment": NOON, **changes})


def said_by(rule: Rule, **changes: object) -> Verdict:
    (verdict,) = [v for v in review(HONEST, context(rule, **changes)).verdicts if v.name == rule.name]
    return verdict


def spent(amount: int, quorum: str | None = CODE) -> Spent:
    return Spent(f"signed-{amount}", quorum, amount, frozenset({OutPoint("11" * 32, amount)}))


MET = {
    "transaction": Condition(RuleKind.PER_TRANSACTION, sats(49_999)),
    "day": Condition(RuleKind.PER_DAY, sats(49_999)),
    "address": Condition(RuleKind.ADDRESS, scripts=frozenset({pay(1, "another shop").script_pubkey})),
    "always": Condition(RuleKind.ALWAYS),
}
NOT_MET = {
    "transaction": Condition(RuleKind.PER_TRANSACTION, sats(50_000)),
    "day": Condition(RuleKind.PER_DAY, sats(50_000)),
    "address": Condition(RuleKind.ADDRESS, scripts=frozenset({SHOP})),
}


@pytest.mark.parametrize("vault_id", [None, VAULT_ID])
@pytest.mark.parametrize("condition", MET.values(), ids=MET)
def test_a_rule_whose_condition_is_met_refuses_or_holds(condition: object, vault_id: str | None) -> None:
    refusing = said_by(Rule(Action.REFUSE, condition, vault_id, OURS))
    assert refusing.outcome is Outcome.REFUSE
    assert refusing.sentence.endswith("your rules refuse it.")
    asking = said_by(Rule(Action.ASK, condition, vault_id, OURS))
    assert (asking.outcome, asking.acknowledge) == (Outcome.WARN, True)
    assert asking.sentence.endswith("your rules ask you first.")


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("condition", NOT_MET.values(), ids=NOT_MET)
def test_a_rule_whose_condition_is_not_met_lets_it_pass(condition: object, action: Action) -> None:
    assert said_by(Rule(action, condition)).outcome is Outcome.ALLOW


def test_a_rule_of_another_vault_says_nothing() -> None:
    found = review(HONEST, context(Rule(Action.REFUSE, Condition(RuleKind.ALWAYS), VAULT_ID, OTHER)))
    assert found.allowed
    assert found.digest == review(HONEST, context()).digest


def test_a_limit_of_a_vault_counts_the_vault_and_the_common_one_counts_all() -> None:
    paid = (spent(30_000), spent(20_000, "another"))
    limit = Condition(RuleKind.PER_DAY, sats(80_000))
    ours = Rule(Action.REFUSE, limit, "treasury", OURS)
    assert said_by(ours, spent=paid).outcome is Outcome.ALLOW
    # Where the vault could not be read it counts for every vault.
    assert said_by(ours, spent=(*paid, spent(1, None))).outcome is Outcome.REFUSE
    common = said_by(Rule(Action.REFUSE, limit), spent=paid)
    assert common.outcome is Outcome.REFUSE
    assert common.figures == {"with_this_sats": 100_000, "paid_sats": 50_000, "limit_sats": 80_000}
    assert "0.00100000 BTC (100,000 sats)" in common.sentence


def test_where_the_time_is_not_known_a_days_limit_refuses() -> None:
    assert (
        said_by(Rule(Action.REFUSE, Condition(RuleKind.PER_DAY, sats(10**9))), moment=None).outcome
        is Outcome.REFUSE
    )


def test_s24_time_alone_does_not_undo_an_approval_and_a_payment_that_tips_a_limit_does() -> None:
    rules = (Rule(Action.ASK, Condition(RuleKind.PER_DAY, sats(60_000))),)
    first = review(HONEST, context(*rules))
    later = NOON + timedelta(minutes=7)
    assert review(HONEST, context(*rules, moment=later)).digest == first.digest
    assert review(HONEST, context(*rules, spent=(spent(10_001),))).digest != first.digest


# --- never wider --------------------------------------------------------------------------------------------

conditions = st.sampled_from([*MET.values(), *NOT_MET.values()])
rule_sets = st.lists(
    st.builds(
        Rule,
        st.sampled_from(Action),
        conditions,
        st.sampled_from([None, VAULT_ID]),
        st.sampled_from([OURS, OTHER]),
    ),
    max_size=8,
)
RIVAL = Neighbour(
    "p-0", State.SUBMITTED, signed=True, outpoints=frozenset(), payments=frozenset({(SHOP, 50_000)})
)
worlds = st.fixed_dictionaries(
    {
        "neighbours": st.sampled_from([(), (RIVAL,)]),
        "claim": st.sampled_from([review_context().claim, None]),
        "spent": st.lists(st.integers(1, 90_000).map(spent), max_size=3).map(tuple),
        "lowered": st.sets(st.sampled_from(LOWERABLE)).map(frozenset),
        "moment": st.sampled_from([NOON, NOON + timedelta(days=1), None]),
    }
)
snapshots = st.sampled_from([HONEST, replace(HONEST, fee=999), snapshot_of(spend(fee=18_182))])


@settings(max_examples=examples(60))
@given(snapshots, rule_sets, rule_sets, worlds)
def test_no_rule_turns_a_refusal_into_an_allow_or_takes_an_acknowledgement_away(
    snapshot: object, rules: list[Rule], more: list[Rule], world: dict[str, object]
) -> None:
    before = review(snapshot, context(*rules, **world))
    after = review(snapshot, context(*rules, *more, **world))
    assert {v.name for v in before.refusals} <= {v.name for v in after.refusals}
    assert before.to_acknowledge <= after.to_acknowledge
    assert after.allowed <= before.allowed
    assert set(map(repr, before.verdicts)) <= set(map(repr, after.verdicts))


HOME = VAULT.script_pubkey(RECEIVE, 0)
NOBODY = Condition(RuleKind.ADDRESS, scripts=frozenset({HOME}))
GIVING = {Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP}


def outcome(condition: Condition, payload: Payload | None) -> Outcome:
    rule = Rule(Action.REFUSE, condition)
    snapshot = snapshot_of(spend()) if payload is None else token_snapshot(payload)
    found = review(snapshot, review_context(token=GOLD, rules=Rules((rule,))))
    return next(verdict.outcome for verdict in found.verdicts if verdict.name == rule.name)


@pytest.mark.parametrize("function", Function)
def test_a_list_of_addresses_applies_to_recipients_of_tokens_or_control(function: Function) -> None:
    wanted = Outcome.REFUSE if function in GIVING else Outcome.ALLOW
    assert outcome(NOBODY, call(function)) is wanted


def test_who_is_on_the_list_and_the_vault_itself_may_get_them_and_no_limit_in_bitcoin_counts_them() -> None:
    listed = Condition(RuleKind.ADDRESS, scripts=frozenset({HOLDER}))
    assert outcome(listed, call()) is outcome(listed, call(to=HOME)) is Outcome.ALLOW
    assert outcome(Condition(RuleKind.PER_TRANSACTION, sats(0)), call(amount=10**9)) is Outcome.ALLOW


def test_any_token_is_met_by_calls_and_deployments_and_by_nothing_else() -> None:
    assert outcome(Condition(RuleKind.TOKEN), call(Function.PAUSE)) is Outcome.REFUSE
    assert outcome(Condition(RuleKind.TOKEN), GOLD.deployment) is Outcome.REFUSE
    assert outcome(Condition(RuleKind.TOKEN), None) is Outcome.ALLOW


COINS = [OutPoint(f"{n:064x}", n) for n in range(5)]


def coins(*numbers: int) -> frozenset[OutPoint]:
    return frozenset(COINS[n] for n in numbers)


some_spent = st.builds(
    Spent,
    psbt_id=st.uuids().map(str),
    quorum=st.just("v"),
    amount=st.integers(0, 1000),
    outpoints=st.frozensets(st.sampled_from(COINS), min_size=1, max_size=3),
)
several = st.lists(some_spent, max_size=6)


def can_confirm_together(group: tuple[Spent, ...]) -> bool:
    return sum(len(item.outpoints) for item in group) == len(
        frozenset().union(*(item.outpoints for item in group))
    )


def brute_force(items: list[Spent]) -> int:
    """The most that any set of transactions that share no coin pays."""
    groups = (group for size in range(len(items) + 1) for group in combinations(items, size))
    return max(sum(item.amount for item in group) for group in groups if can_confirm_together(group))


@given(several)
def test_the_worst_case_is_never_below_what_can_confirm_and_never_above_the_sum(items: list[Spent]) -> None:
    assert brute_force(items) <= worst_case(items) <= sum(item.amount for item in items)


@given(several)
def test_where_no_coin_is_shared_it_is_the_sum(items: list[Spent]) -> None:
    apart = [replace(item, outpoints=frozenset({OutPoint("00" * 32, n)})) for n, item in enumerate(items)]
    assert worst_case(apart) == sum(item.amount for item in items) == brute_force(apart)


@given(several)
def test_where_all_spend_one_coin_the_largest_counts(items: list[Spent]) -> None:
    rivals = [replace(item, outpoints=item.outpoints | coins(0)) for item in items]
    assert worst_case(rivals) == max((item.amount for item in items), default=0) == brute_force(rivals)
