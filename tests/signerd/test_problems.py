"""Every error has a status, and comes out on the client's side as what it was."""

import json

import pytest

from signerd import errors as e
from signerd.errors import SignerdError, leaves
from signerd.problems import error_from, problem
from tests.support.command import is_tame


def made(leaf: type[e.SignerdError]) -> e.SignerdError:
    if leaf is e.PlatformRefused:
        return e.PlatformRefused("no", platform_code="LIMIT_EXCEEDED", status=422)
    return leaf("it cannot be")


def test_what_an_error_is_stands_at_its_class_or_its_branch():
    for leaf in leaves():
        assert leaf.meaning, f"{leaf.__name__} has no meaning"
        assert leaf.http_status >= 400
    assert all(not branch.meaning for branch in SignerdError.__subclasses__())


@pytest.mark.parametrize("leaf", leaves(), ids=lambda leaf: leaf.code)
def test_a_problem_comes_out_as_the_error_that_went_in(leaf):
    error = made(leaf)
    body = json.loads(json.dumps(problem(error)))
    assert body["status"] == error.http_status
    assert body["type"].endswith(body["code"])
    again = error_from(body)
    assert type(again) is leaf
    assert (str(again), again.hint) == (str(error), error.hint)


def test_l8_the_words_of_a_problem_are_tame():
    body = problem(e.PlatformRefused("\x1b[2J\u202eevil", platform_code="\x07", status=400, hint="\r\n"))
    assert all(is_tame(value) for value in body.values() if isinstance(value, str))
