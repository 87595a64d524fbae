"""The one table of checks: it lists what a review can say and nothing else, and what may be lowered is harmless."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from multisig import FindingCode, Psbt, inspect
from signerd.core import checks as package
from signerd.core.checks import (
    AFTER_INSPECTION,
    BEFORE_INSPECTION,
    BROUGHT_AFTER_INSPECTION,
    BROUGHT_OF_PROFILE,
    BROUGHT_OF_VAULT,
    FORWARD_AFTER_INSPECTION,
    FORWARD_BEFORE_INSPECTION,
    TOKEN_AFTER_INSPECTION,
    Case,
    InspectedCase,
)
from signerd.core.checks.table import CHECKS, LOWERABLE, LOWERED, UNTOUCHABLE, lower
from signerd.core.review import review
from signerd.core.rules.values import RULE_NAMES
from signerd.core.states import State
from signerd.core.values import Imported, Neighbour, ReviewContext, Snapshot
from signerd.core.verdicts import Outcome, allow, hold, refuse, warn
from tests.support.desk import NETWORK, VAULT, make_pin, review_context, snapshot_of, spend
from tests.support.tokens import call, token_snapshot

HONEST = snapshot_of(spend())


def names_of_checks() -> set[str]:
    psbt, around = Psbt.parse(HONEST.psbt), review_context()
    before = {check(Case(HONEST, psbt, around)).name for check in BEFORE_INSPECTION}
    before |= {check(Case(HONEST, psbt, around)).name for check in FORWARD_BEFORE_INSPECTION}
    given = Case(replace(HONEST, brought=Imported("App", "app-1", 0)), psbt, around)
    before |= {check(given).name for check in (*BROUGHT_OF_VAULT, *BROUGHT_OF_PROFILE)}
    case = InspectedCase(HONEST, psbt, around, make_pin(), inspect(psbt, VAULT, network=NETWORK))
    after = (*AFTER_INSPECTION, *FORWARD_AFTER_INSPECTION, *BROUGHT_AFTER_INSPECTION)
    called = token_snapshot(call())
    token_psbt = Psbt.parse(called.psbt)
    token = InspectedCase(called, token_psbt, around, make_pin(), inspect(token_psbt, VAULT, network=NETWORK))
    tokens = {check(token).name for check in TOKEN_AFTER_INSPECTION}
    return before | {check(case).name for check in after} | tokens


def names_of_the_review_itself() -> set[str]:
    unreadable = {v.name for v in review(snapshot_of(b"psbt?"), review_context()).verdicts}
    lowered = {v.name for v in review(HONEST, review_context(lowered=frozenset(LOWERABLE))).verdicts}
    return unreadable | (lowered - names_of_checks())


def test_the_table_lists_exactly_what_a_review_can_say() -> None:
    findings = {code.value for code in FindingCode}
    assert names_of_the_review_itself() == {"psbt-readable", "transaction", LOWERED}
    assert set(CHECKS) == findings | names_of_checks() | names_of_the_review_itself() | set(RULE_NAMES)
    assert all(name == check.name for name, check in CHECKS.items())


def test_a_check_speaks_under_one_name_whatever_it_says() -> None:
    """Else the test above, which asks each check once, would miss one."""
    for path in Path(package.__path__[0]).glob("*.py"):
        text = path.read_text()
        assert not re.findall(r"\b(?:allow|warn|hold|refuse)\(\s*f?\"", text), path.name


def test_every_attack_is_one_of_the_list() -> None:
    known = {f"S{number}" for number in range(1, 31)}
    assert {attack for check in CHECKS.values() for attack in check.attacks} <= known
    assert known >= UNTOUCHABLE


def test_what_stands_against_an_attack_on_the_money_may_not_be_lowered() -> None:
    assert {"S1", "S5", "S8", "S13", "S16", "S19", "S23", "S24"} <= UNTOUCHABLE
    assert LOWERABLE == ("conflict", "fee-recorded", "fee-share", "locktime")
    for name in LOWERABLE:
        assert not UNTOUCHABLE.intersection(CHECKS[name].attacks)


@pytest.mark.parametrize("name", sorted(set(CHECKS) - set(LOWERABLE)))
def test_what_may_not_be_lowered_stays_whatever_is_asked(name: str) -> None:
    judged = (refuse(name, "No."), hold(name, "Hold."))
    assert lower(judged, frozenset({name})) == judged


def test_lowering_goes_one_step_and_never_up() -> None:
    names = frozenset(LOWERABLE)
    assert lower((refuse("fee-share", "No.", a=1),), names)[0] == hold("fee-share", "No.", a=1)
    for verdict in (warn("fee-share", "W."), allow("locktime", "A."), refuse("conflict", "R.")):
        assert lower((verdict,), names)[0] == verdict
    assert lower((hold("locktime", "H."),), names)[0] == warn("locktime", "H.")


def rival() -> ReviewContext:
    coins = frozenset(item.outpoint for item in spend().inputs)
    first = Neighbour("p-0", State.SUBMITTED, signed=True, outpoints=coins, payments=frozenset())
    return review_context(neighbours=(first,))


@pytest.mark.parametrize(
    ("name", "snapshot", "around"),
    [
        ("fee-share", snapshot_of(spend(fee=18_182)), review_context()),
        ("fee-recorded", replace(HONEST, fee=999), review_context()),
        ("conflict", HONEST, rival()),
        ("locktime", snapshot_of(spend(locktime=200_000)), review_context()),
    ],
)
def test_a_lowered_check_still_speaks_and_the_review_says_that_it_was_lowered(
    name: str, snapshot: Snapshot, around: ReviewContext
) -> None:
    strict = review(snapshot, around)
    assert not strict.allowed or name in strict.to_acknowledge
    found = review(snapshot, replace(around, lowered=frozenset({name})))
    assert found.allowed
    (verdict,) = [v for v in found.verdicts if v.name == name]
    assert verdict.outcome is Outcome.WARN
    assert verdict.acknowledge is (CHECKS[name].lowered == "hold")
    told = found.verdicts[-1]
    assert (told.name, told.outcome, told.figures) == (LOWERED, Outcome.WARN, {"checks": name})
    assert found.digest != strict.digest


def test_s7_the_hard_limits_stand_above_what_is_lowered() -> None:
    # Of inputs of 200,000 satoshis: more than half.
    found = review(snapshot_of(spend(fee=100_001)), review_context(lowered=frozenset(LOWERABLE)))
    assert {verdict.name for verdict in found.refusals} == {"transaction", "fee-above-limit"}


def test_every_review_says_what_is_lowered_also_where_it_changes_nothing() -> None:
    around = review_context(lowered=frozenset({"locktime", "fee-share"}))
    for snapshot, surrounding in [
        (HONEST, around),
        (snapshot_of(b"garbage"), around),
        (HONEST, replace(around, pin=None)),
    ]:
        assert review(snapshot, surrounding).verdicts[-1].figures == {"checks": "fee-share, locktime"}


def test_nothing_is_said_where_nothing_is_lowered() -> None:
    assert LOWERED not in {v.name for v in review(HONEST, review_context()).verdicts}
    assert LOWERED not in {
        v.name for v in review(HONEST, review_context(lowered=frozenset({"own-key"}))).verdicts
    }
