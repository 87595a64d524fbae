"""Two at the same moment: of calls that exceed a balance together one passes, and a coin begins one of two."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.token_desk import BOB, EVE


@pytest.fixture
def together():
    with ThreadPoolExecutor(2) as pool:

        def run(*asked):
            waiting = [pool.submit(each) for each in asked]
            return sorted(
                (answer.status_code, answer.json().get("code")) for answer in (w.result() for w in waiting)
            )

        yield run


def test_p16_of_two_calls_over_one_coin_one_passes(tokens, together):
    uid = tokens.started()
    answers = together(
        lambda: tokens.call(uid, "transfer", BOB, 1), lambda: tokens.call(uid, "transfer", EVE, 1)
    )
    assert answers == [(200, None), (409, "LOCKED_FUNDS")]


def test_p17_of_two_calls_that_exceed_a_balance_together_one_passes(tokens, together):
    tokens.fund(100_000, 100_000)
    uid = tokens.started()
    answers = together(
        lambda: tokens.call(uid, "transfer", BOB, 500), lambda: tokens.call(uid, "transfer", EVE, 500)
    )
    assert answers == [(200, None), (409, "LOCKED_FUNDS")]


def test_p31_of_two_mints_beyond_the_maximum_one_passes(tokens, together):
    tokens.fund(100_000, 100_000)
    uid = tokens.started()
    answers = together(lambda: tokens.call(uid, "mint", BOB, 60), lambda: tokens.call(uid, "mint", EVE, 60))
    assert answers == [(200, None), (422, "VALIDATION")]
