"""S6, S25: both are shown, families are let through, and a chain of bumps hides no second payment."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signerd.core.checks.case import Outcome, Verdict
from signerd.core.review import Review, review
from signerd.core.states import State
from signerd.core.values import Neighbour, Snapshot
from tests.support.desk import review_context, snapshot_of
from tests.support.payments import SIGNED_AT, neighbour_of, shop, spend_of


def found(snapshot: Snapshot, *others: Neighbour) -> Review:
    return review(snapshot, review_context(neighbours=others))


def verdict(seen: Review, name: str) -> Verdict:
    (one,) = [v for v in seen.verdicts if v.name == name]
    return one


FIRST = neighbour_of(shop((1,)))


def test_s6_both_payments_are_shown_with_id_amount_address_and_time() -> None:
    seen = found(shop((2,), psbt_id="p-2"), FIRST)
    assert seen.to_acknowledge == {"paid-twice"}
    told = verdict(seen, "paid-twice")
    for part in (
        "On 2026-01-02 at 03:04 UTC you signed p-1",
        "0.00050000 BTC (50,000 sats) to bcrt1",
        "(p-2)",
    ):
        assert part in told.sentence
    assert told.figures == {"proposals": "p-1"}
    # Change that happens to be equal is nobody's payment.
    assert told.sentence.count("sats") == 2


def test_s6_an_undeclared_second_spend_is_held_and_both_are_shown() -> None:
    for other in (shop((1,), 2_000, "p-2"), snapshot_of(spend_of((1, 2), (("other", 5_000),)), "p-2")):
        seen = found(other, FIRST)
        assert seen.to_acknowledge == {"conflict"}
        told = verdict(seen, "conflict").sentence
        assert "you signed p-1, which pays 0.00050000 BTC (50,000 sats) to bcrt1" in told
        assert "only one of them can confirm" in told


def test_s6_a_bump_of_a_bump_is_one_family() -> None:
    second = neighbour_of(shop((1, 2), 2_000, "p-2", replaces="p-1"))
    for replaces in ("p-1", "p-2"):
        seen = found(shop((1, 2), 4_000, "p-3", replaces=replaces), FIRST, second)
        assert seen.allowed
        assert not seen.to_acknowledge
        assert verdict(seen, "conflict").figures == {"proposals": "p-1, p-2"}


def test_s6_a_bump_of_a_bump_that_lets_the_first_confirm_beside_it_is_held() -> None:
    """The second bump shares a coin with the bump, and none with what that replaced."""
    second = neighbour_of(shop((1, 2), 2_000, "p-2", replaces="p-1"))
    seen = found(shop((2,), 4_000, "p-3", replaces="p-2"), FIRST, second)
    assert not seen.allowed
    assert "paid-twice" in seen.to_acknowledge
    undeclared = found(shop((2,), 4_000, "p-3"), FIRST, second)
    assert undeclared.to_acknowledge == {"conflict", "paid-twice"}


def test_s6_a_bump_that_another_one_outbids_or_whose_new_coin_is_spent_is_held() -> None:
    dearer = neighbour_of(shop((1,), 9_000, "p-2", replaces="p-1"))
    assert found(shop((1,), 4_000, "p-3", replaces="p-1"), FIRST, dearer).to_acknowledge == {"conflict"}
    elsewhere = neighbour_of(snapshot_of(spend_of((2,), (("other", 5_000),)), "p-2"))
    assert found(shop((1, 2), 4_000, "p-3", replaces="p-1"), FIRST, elsewhere).to_acknowledge == {"conflict"}


@pytest.mark.parametrize("state", list(State))
def test_s6_no_word_of_the_platform_lifts_a_hold(state: State) -> None:
    first = replace(FIRST, state=state)
    assert found(shop((2,), psbt_id="p-2"), first).to_acknowledge == {"paid-twice"}
    assert found(shop((1,), 2_000, "p-2"), first).to_acknowledge == {"conflict"}


@pytest.mark.parametrize(
    ("state", "words"),
    [(State.SIGNING, "Your device is asked to sign p-1"), (State.BROADCAST, "The others completed p-1")],
)
def test_s6_what_this_machine_did_not_sign_is_not_said_to_be_signed(state: State, words: str) -> None:
    first = neighbour_of(shop((1,)), state, signed=False)
    assert words in verdict(found(shop((2,), psbt_id="p-2"), first), "paid-twice").sentence
    assert words in verdict(found(shop((1,), 2_000, "p-2"), first), "conflict").sentence


@pytest.mark.parametrize(
    "state", [State.WAITING_PERSON, State.WAITING_DEVICE, State.INTERRUPTED, State.RECEIVED]
)
def test_s25_two_open_proposals_are_shown_as_conflicting_before_either_is_signed(state: State) -> None:
    one, other = shop((1,)), shop((1, 2), 2_000, "p-2")
    for mine, rival in ((one, other), (other, one)):
        seen = found(mine, neighbour_of(rival, state, signed=False))
        told = verdict(seen, "conflict")
        assert (told.outcome, told.figures) == (Outcome.WARN, {"proposals": rival.psbt_id})
        assert not seen.to_acknowledge


def test_s25_a_family_whose_first_is_open_is_shown_too() -> None:
    waiting = neighbour_of(shop((1,)), State.WAITING_PERSON, signed=False)
    seen = found(shop((1,), 2_000, "p-2", replaces="p-1"), waiting)
    assert seen.allowed
    assert verdict(seen, "conflict").outcome is Outcome.WARN


@pytest.mark.parametrize("state", [State.DECLINED, State.EXPIRED, State.WITHDRAWN, State.QUARANTINED])
def test_what_nobody_here_signed_and_nobody_will_be_asked_about_is_silent(state: State) -> None:
    gone = neighbour_of(shop((1,)), state, signed=False)
    assert verdict(found(shop((1,), 2_000, "p-2"), gone), "conflict").outcome is Outcome.ALLOW


def test_a_rent_that_was_paid_often_is_told_by_its_newest_three() -> None:
    paid = [
        neighbour_of(shop((number,), psbt_id=f"p-{number}"), at=SIGNED_AT + timedelta(days=number))
        for number in range(1, 8)
    ]
    told = verdict(found(shop((9,), psbt_id="p-9"), *paid), "paid-twice").sentence
    assert [f"p-{n}," in told for n in range(1, 8)] == [False] * 4 + [True] * 3
    assert "and 4 more" in told


def test_the_longest_of_these_sentences_still_says_what_it_is_about() -> None:
    many = tuple((f"payee {number}", 1_000 + number) for number in range(20))
    paid = [
        neighbour_of(snapshot_of(spend_of((number,), many), f"{'p' * 60}-{number}")) for number in range(1, 5)
    ]
    for coins, name in (((9,), "paid-twice"), ((1, 2, 3, 4), "conflict")):
        told = verdict(found(snapshot_of(spend_of(coins, many), "q" * 64), *paid), name).sentence
        assert "confirm" in told[:400]
        assert len(told) < 1_500


def test_an_unsaid_time_and_an_unreadable_first_are_no_reason_to_be_silent() -> None:
    blind = replace(FIRST, signed_at=None, psbt=b"")
    assert "You signed p-1" in verdict(found(shop((2,), psbt_id="p-2"), blind), "paid-twice").sentence
    seen = found(shop((1,), 2_000, "p-2", replaces="p-1"), blind)
    assert seen.to_acknowledge == {"replacement", "conflict"}
