"""The alarm that stays until the person looked (S16), and the name that is a label only."""

import re
from dataclasses import replace

import pytest

from custody.common.pages.figures import sentence
from signerd.core.checks.case import Outcome
from signerd.core.review import review
from tests.support.desk import claim, make_pin, review_context, snapshot_of, spend

HONEST = snapshot_of(spend())


def verdict(name, **context):
    (found,) = [v for v in review(HONEST, review_context(**context)).verdicts if v.name == name]
    return found


def test_another_name_is_shown_and_allowed():
    found = verdict("vault-name", claim=claim("\x1b[2JSavings"))
    assert found.outcome is Outcome.WARN
    assert not found.acknowledge
    assert "\x1b" not in found.sentence
    assert review(HONEST, review_context(claim=claim("Savings"))).allowed


@pytest.mark.parametrize(
    ("vault_id", "command"), [("v-1", "signerd pin v-1"), ("--code=x", "signerd pin -- --code=x")]
)
def test_a_vault_that_is_not_pinned_is_named_in_the_command_by_its_id(vault_id, command):
    """The platform chose its name; a shell would run what is in it, the page would show it as a command."""
    name = "`$(rm -rf ~)` 'x' ` \x1b[2J"
    context = review_context(pin=None, claim=claim(name))
    told = review(replace(HONEST, vault_id=vault_id), context).refusals[0].sentence
    assert re.findall("`([^`]*)`", told) == [command]
    assert re.findall("<code>(.*?)</code>", sentence(told)) == [command]
    assert "rm" not in told


def test_a_name_makes_no_command_of_what_it_says():
    found = verdict(
        "vault-name", claim=claim("`signerd unpin vault-1`"), pin=replace(make_pin(), name="Cold `")
    )
    assert "<code>" not in sentence(found.sentence)
    assert "'signerd unpin vault-1'" in found.sentence
