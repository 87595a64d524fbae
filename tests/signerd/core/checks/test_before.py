"""The alarm that stays until the person looked (S16), and the name that is a label only."""

from signerd.core.checks.case import Outcome
from signerd.core.checks.table import CHECKS, Stage
from signerd.core.review import review
from tests.support.desk import review_context, snapshot_of, spend

HONEST = snapshot_of(spend())


def verdict(name, **around):
    (found,) = [v for v in review(HONEST, review_context(**around)).verdicts if v.name == name]
    return found


def test_no_change_no_alarm():
    assert verdict("vault-alarm").outcome is Outcome.ALLOW
    assert verdict("vault-name").outcome is Outcome.ALLOW
    assert verdict("vault-name", claimed_name="Treasury").outcome is Outcome.ALLOW


def test_s16_a_change_refuses_though_the_platform_took_it_back():
    found = verdict("vault-alarm", vault_changes=("It needs 1 signatures, not 2.",))
    assert found.outcome is Outcome.REFUSE
    assert "It needs 1 signatures, not 2." in found.sentence
    assert not review(HONEST, review_context(vault_changes=("x.",))).allowed


def test_another_name_is_shown_and_allowed():
    found = verdict("vault-name", claimed_name="\x1b[2JSavings")
    assert found.outcome is Outcome.WARN
    assert not found.acknowledge
    assert "\x1b" not in found.sentence
    assert review(HONEST, review_context(claimed_name="Savings")).allowed


def test_an_alarm_comes_before_the_transaction_is_judged():
    assert CHECKS["vault-alarm"].stage is Stage.BEFORE
    assert review(HONEST, review_context(vault_changes=("x.",))).inspection is None
