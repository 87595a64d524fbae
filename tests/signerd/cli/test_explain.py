"""Each code has an explanation, each explanation a code, and the page of the site says the same."""

import pytest
from click.testing import CliRunner

from custody.cli.program import app as custody
from custody.schemas.errors import ErrorCode
from firmware_bridge.errors import BridgeError
from signerd.cli.explain import table
from signerd.cli.program import app
from signerd.core.checks.table import CHECKS
from signerd.errors import InvalidRequest, StaleApproval, leaves
from tests.support.code_page import PAGE, page

ERRORS = {kind.code for kind in leaves()}
OUTCOMES = {kind.code for kind in BridgeError.__subclasses__()}
ANSWERS = {code.value for code in ErrorCode}


def explain(*arguments):
    return CliRunner().invoke(app, ["explain", *arguments])


def test_each_code_has_an_entry_and_each_entry_a_code():
    assert set(table()) == ERRORS | set(CHECKS) | OUTCOMES | ANSWERS


def test_the_page_is_the_table():
    """Where they differ: ``python -m tests.support.code_page``."""
    assert PAGE.read_text(encoding="utf-8").rstrip() == page().rstrip()


def test_it_says_what_to_do_and_the_exit_status():
    said = explain("stale-approval").stdout
    assert "something else than what you approved" in said
    assert StaleApproval.default_hint in said
    assert f"Exit status {StaleApproval.exit_status:d}." in said


def test_both_programs_say_the_same_of_the_platforms_codes_and_who_can_act():
    for code in ANSWERS:
        ours, theirs = explain(code).stdout, CliRunner().invoke(custody, ["explain", code.lower()]).stdout
        assert theirs.splitlines()[0] == code
        assert theirs.splitlines()[1:] == ours.splitlines()[1:]
        assert theirs.splitlines()[-1].startswith("  Who can: ")


def test_a_mistyped_code_is_told_its_neighbours():
    with pytest.raises(InvalidRequest) as refused:
        app.main(["explain", "payed-twice"], standalone_mode=False)
    assert "paid-twice" in refused.value.hint
