"""S6, S11, S25: two proposals that meet are both shown, fee bumps and cancels are let through, and a chain of
bumps hides no second payment.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from multisig import Psbt
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.review import ProposalReview, review
from signerd.core.states import State
from signerd.core.values import Neighbour, Snapshot
from tests.support.desk import review_context, snapshot_of
from tests.support.payments import SHOP, SIGNED_AT, neighbour_of, shop, spend_of
from tests.support.wallets import make_vault


def found(snapshot: Snapshot, *others: Neighbour) -> ProposalReview:
    return review(snapshot, review_context(neighbours=others))


def verdict(seen: ProposalReview, name: str = "replacement") -> Verdict:
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
        "both can be paid",
    ):
        assert part in told.sentence
    assert told.figures == {"proposals": "p-1"}
    # What both pay is named once, and an equal amount of change is not a payment.
    assert told.sentence.count("sats") == 1


def test_s6_the_same_transaction_once_more_is_called_that_and_still_held() -> None:
    again = shop((1,), psbt_id="p-2")
    seen = found(again, FIRST)
    assert seen.to_acknowledge == {"conflict"}
    told = verdict(seen, "conflict").sentence
    assert "It is the same transaction once more: it can confirm only once" in told
    assert "you signed p-1, which pays" in told
    waiting = replace(FIRST, signed=False, state=State.WAITING_PERSON)
    assert "the same transaction as p-1" in verdict(found(again, waiting), "conflict").sentence
    # Beside another one, only one of which can confirm, that is what counts.
    other = neighbour_of(shop((1,), 2_000, "p-3"))
    both = verdict(found(again, FIRST, other), "conflict").sentence
    assert "only one of them can confirm" in both
    assert ". On 2026" in both
    assert ";" not in both


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.SIGNING, "Your device is asked to sign p-1"),
        (State.BROADCAST, "The others completed p-1"),
        (State.EXPORTED, "You exported, to be signed without a cable, p-1"),
    ],
)
def test_s6_what_this_machine_did_not_sign_is_not_said_to_be_signed(state: State, words: str) -> None:
    first = replace(neighbour_of(shop((1,)), state, signed=False), exported=state is State.EXPORTED)
    assert words in verdict(found(shop((2,), psbt_id="p-2"), first), "paid-twice").sentence
    assert words in verdict(found(shop((1,), 2_000, "p-2"), first), "conflict").sentence


def test_a_rent_that_was_paid_often_is_told_by_its_newest_three() -> None:
    paid = [
        neighbour_of(shop((number,), psbt_id=f"p-{number}"), at=SIGNED_AT + timedelta(days=number))
        for number in range(1, 8)
    ]
    told = verdict(found(shop((9,), psbt_id="p-9"), *paid), "paid-twice").sentence
    assert [f"you signed p-{n}" in told for n in range(1, 8)] == [False] * 4 + [True] * 3
    assert "and 4 more" in told


def test_the_longest_of_these_sentences_still_says_what_it_is_about() -> None:
    many = tuple((f"payee {number}", 1_000 + number) for number in range(20))
    paid = [
        neighbour_of(snapshot_of(spend_of((number,), many), f"{'p' * 60}-{number}")) for number in range(1, 5)
    ]
    for coins, name, says in (
        ((9,), "paid-twice", "both can be paid"),
        ((1, 2, 3, 4), "conflict", "can confirm"),
    ):
        told = verdict(found(snapshot_of(spend_of(coins, many), "q" * 64), *paid), name).sentence
        assert says in told[:400]
        assert len(told) < 1_500


@pytest.mark.parametrize(
    ("state", "words"), [(State.CONFIRMED, "it has confirmed."), (State.WITHDRAWN, "it was rejected or")]
)
def test_what_became_of_the_other_is_told_as_the_platforms_word(state, words) -> None:
    ended = replace(FIRST, state=state)
    for coins, name in (((1,), "conflict"), ((2,), "paid-twice")):
        told = verdict(found(shop(coins, 2_000, "p-2"), ended), name)
        assert f"; by the platform's word {words}" in told.sentence
        assert told.acknowledge


def test_an_unsaid_time_and_an_unreadable_first_are_no_reason_to_be_silent() -> None:
    blind = replace(FIRST, signed_at=None, psbt=b"")
    assert "You signed p-1" in verdict(found(shop((2,), psbt_id="p-2"), blind), "paid-twice").sentence
    seen = found(shop((1,), 2_000, "p-2", replaces="p-1"), blind)
    assert seen.to_acknowledge == {"replacement", "conflict"}


def bump(psbt: Psbt, psbt_id: str = "p-2", replaces: str | None = "p-1") -> Snapshot:
    return snapshot_of(psbt, psbt_id, replaces=replaces)


def test_s6_a_declared_fee_bump_passes_and_says_what_changes() -> None:
    seen = found(bump(spend_of((1,), SHOP, 2_000)), FIRST)
    assert seen.allowed
    assert not seen.to_acknowledge
    told = verdict(seen)
    assert told.outcome is Outcome.ALLOW
    assert "It replaces p-1: only the fee changes, from 5." in told.sentence
    assert "sat/vB (0.00001000 BTC (1,000 sats) to 0.00002000 BTC (2,000 sats))." in told.sentence
    assert told.figures == {"replaces": "p-1", "fee_sats": 2_000, "replaced_fee_sats": 1_000}
    assert "only one can confirm" in verdict(seen, "conflict").sentence
    near = verdict(found(bump(spend_of((1,), SHOP, 1_010)), FIRST))
    assert (near.outcome, near.acknowledge, "not every node" in near.sentence) == (Outcome.WARN, False, True)


@pytest.mark.parametrize(
    ("psbt", "words"),
    [
        (spend_of((1,), (("shop", 50_001),), 2_000), "where the first pays 0.00050000 BTC"),
        (spend_of((1,), (("thief", 50_000),), 2_000), "It does not pay the first's 0.00050000 BTC"),
        (spend_of((1,), (*SHOP, ("thief", 1_000)), 2_000), "which the first does not."),
        (spend_of((1,), (*SHOP, ("shop", 1_000)), 2_000), "0.00001000 BTC (1,000 sats) to"),
        (spend_of((1,), (("shop", 25_000), ("shop", 25_000)), 2_000), "in other parts"),
        (spend_of((1,), SHOP, 2_000, data=b"hello"), "other data"),
        (spend_of((2,), SHOP, 2_000), "both could confirm"),
        (spend_of((1,), SHOP, 1_000), "is not above the first's"),
        (spend_of((1,), SHOP, 999), "is not above the first's"),
        # A higher fee for a larger transaction, at a lower rate.
        (spend_of((1, 2, 3), SHOP, 1_500), "fee rate"),
    ],
)
def test_s11_a_bump_that_changes_anything_but_the_fee_is_refused_in_words(psbt: Psbt, words: str) -> None:
    seen = found(bump(psbt), FIRST)
    assert "replacement" in {v.name for v in seen.refusals}
    assert words in verdict(seen).sentence
    assert verdict(seen).sentence.startswith(
        "It says that it replaces p-1, but it does not only raise the fee."
    )


def test_s11_what_leaves_no_change_takes_the_fee_out_of_its_one_payment_and_says_so() -> None:
    whole = neighbour_of(snapshot_of(spend_of((1, 2), (("shop", 199_000),), 1_000), "p-1"))
    seen = found(bump(spend_of((1, 2), (("shop", 197_000),), 3_000)), whole)
    told = verdict(seen)
    assert seen.allowed
    assert told.outcome is Outcome.WARN
    assert "out of the payment, of which 0.00197000 BTC (197,000 sats) are left." in told.sentence
    for psbt in (
        spend_of((1, 2), (("thief", 197_000),), 3_000),
        spend_of((1, 2), (("shop", 190_000),), 3_000),
        spend_of((1, 2), (("shop", 196_000), ("thief", 1_000)), 3_000),
        spend_of((1, 2, 3), (("shop", 297_000),), 3_000),
        spend_of((1, 2), (("shop", 199_500),), 500),
    ):
        assert not found(bump(psbt), whole).allowed


def test_s11_what_cannot_be_compared_is_held() -> None:
    other = neighbour_of(snapshot_of(spend_of((1,), SHOP, policy=make_vault(account=1)), "p-1"))
    for known in ((), (other,), (neighbour_of(shop(psbt_id="p-0")),)):
        seen = found(bump(spend_of((1,), SHOP, 2_000)), *known)
        assert "replacement" in seen.to_acknowledge
        assert "cannot compare" in verdict(seen).sentence


def test_l8_the_platforms_word_for_the_replaced_one_is_made_plain_and_short() -> None:
    said = verdict(found(bump(spend_of((1,), SHOP, 2_000), replaces="\x1b[2J" + "x" * 500)))
    assert "\x1b" not in said.sentence
    assert "x" * 65 not in said.sentence
    assert len(said.figures["replaces"]) == 64


# --- cancels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replaces", ["p-1", None])
def test_s6_a_cancel_passes_declared_or_not(replaces: str | None) -> None:
    seen = found(bump(spend_of((1,), (), 2_000), replaces=replaces), FIRST)
    assert seen.allowed
    assert not seen.to_acknowledge
    assert "It pays nobody: of it and p-1 only one can confirm." in verdict(seen, "conflict").sentence
    if replaces:
        assert verdict(seen).sentence.startswith("It takes p-1 back")


def test_a_cancel_that_stops_nothing_is_refused_and_a_cheap_one_is_shown() -> None:
    assert "stops nothing" in verdict(found(bump(spend_of((2,), (), 2_000)), FIRST)).sentence
    cheap = found(bump(spend_of((1,), (), 900)), FIRST)
    assert cheap.allowed
    assert verdict(cheap).outcome is Outcome.WARN
