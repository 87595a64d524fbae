"""Rules and tokens: no limit in bitcoin measures them, and a list of addresses bears on whoever gets them."""

import pytest

from multisig import RECEIVE, Network, sats
from multisig.tokens import Function, Payload
from signerd.core.checks.case import Outcome
from signerd.core.review import review
from signerd.core.rules.reading import read_rules
from signerd.core.rules.values import (
    AbovePerTransaction,
    Action,
    Condition,
    ExceptTo,
    OfToken,
    Rule,
    Rules,
    rule_words,
)
from tests.support.desk import NETWORK, VAULT, review_context, snapshot_of, spend
from tests.support.tokens import GOLD, HOLDER, call, token_snapshot

HOME = VAULT.script_pubkey(RECEIVE, 0)
NOBODY = ExceptTo(frozenset({HOME}))
GIVING = {Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP}


def outcome(condition: Condition, payload: Payload | None) -> Outcome:
    rule = Rule(Action.REFUSE, condition)
    snapshot = snapshot_of(spend()) if payload is None else token_snapshot(payload)
    found = review(snapshot, review_context(token=GOLD, rules=Rules((rule,))))
    return next(verdict.outcome for verdict in found.verdicts if verdict.name == rule.name)


@pytest.mark.parametrize("function", Function)
def test_a_list_of_addresses_bears_on_whoever_gets_tokens_or_control(function: Function) -> None:
    wanted = Outcome.REFUSE if function in GIVING else Outcome.ALLOW
    assert outcome(NOBODY, call(function)) is wanted


def test_who_is_on_the_list_and_the_vault_itself_may_get_them() -> None:
    assert outcome(ExceptTo(frozenset({HOLDER})), call()) is Outcome.ALLOW
    assert outcome(ExceptTo(frozenset({HOLDER})), call(to=HOME)) is Outcome.ALLOW


def test_no_limit_in_bitcoin_counts_an_amount_of_tokens() -> None:
    assert outcome(AbovePerTransaction(sats(0)), call(amount=10**9)) is Outcome.ALLOW


def test_any_token_is_met_by_calls_and_deployments_and_by_nothing_else() -> None:
    assert outcome(OfToken(), call(Function.PAUSE)) is Outcome.REFUSE
    assert outcome(OfToken(), GOLD.deployment) is Outcome.REFUSE
    assert outcome(OfToken(), None) is Outcome.ALLOW


def test_it_is_written_and_read_back() -> None:
    (rule,) = read_rules("[ask]\nany_token = true", Network.REGTEST).rules
    assert rule == Rule(Action.ASK, OfToken())
    assert rule.name == "rule-ask-token"
    assert rule_words(rule, NETWORK) == "ask: whatever makes or calls a token, from all vaults together"
    assert read_rules("[ask]\nany_token = false", Network.REGTEST).rules == ()
