"""S11, and the second spend of S6: what says that it replaces another one may raise its fee, or take it back."""

import pytest

from multisig import Psbt
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.review import Review, review
from signerd.core.states import State
from signerd.core.values import Neighbour, Snapshot
from tests.support.desk import review_context, snapshot_of
from tests.support.payments import SHOP, neighbour_of, shop, spend_of
from tests.support.wallets import make_vault, pay, with_output

FIRST = shop()
SIGNED = neighbour_of(FIRST)


def found(snapshot: Snapshot, *others: Neighbour) -> Review:
    return review(snapshot, review_context(neighbours=others))


def verdict(seen: Review, name: str = "replacement") -> Verdict:
    (one,) = [v for v in seen.verdicts if v.name == name]
    return one


def bump(psbt: Psbt, psbt_id: str = "p-2", replaces: str | None = "p-1") -> Snapshot:
    return snapshot_of(psbt, psbt_id, replaces=replaces)


def test_s6_a_declared_fee_bump_passes_and_says_what_changes() -> None:
    seen = found(bump(spend_of((1,), SHOP, 2_000)), SIGNED)
    assert seen.allowed
    assert not seen.to_acknowledge
    told = verdict(seen)
    assert told.outcome is Outcome.ALLOW
    assert "It replaces p-1: only the fee changes, from 5." in told.sentence
    assert "sat/vB (0.00001000 BTC (1,000 sats) to 0.00002000 BTC (2,000 sats))." in told.sentence
    assert told.figures == {"replaces": "p-1", "fee_sats": 2_000, "replaced_fee_sats": 1_000}
    assert "only one can confirm" in verdict(seen, "conflict").sentence


def test_s6_a_bump_may_add_coins_and_may_spend_all_its_change() -> None:
    for psbt in (spend_of((1, 2), SHOP, 3_000), spend_of((2, 1), SHOP, 3_000)):
        seen = found(bump(psbt), SIGNED)
        assert seen.allowed
        assert not seen.to_acknowledge
    near = neighbour_of(snapshot_of(spend_of((1,), (("shop", 98_600),), 1_000), "p-1"))
    assert found(bump(spend_of((1,), (("shop", 98_600),), 1_400)), near).allowed


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
    seen = found(bump(psbt), SIGNED)
    assert "replacement" in {v.name for v in seen.refusals}
    assert words in verdict(seen).sentence
    assert verdict(seen).sentence.startswith(
        "It says that it replaces p-1, but it does not only raise the fee."
    )


def test_s11_a_bump_that_leaves_a_coin_of_the_first_out_is_refused() -> None:
    two = neighbour_of(shop((1, 2)))
    seen = found(bump(spend_of((1,), SHOP, 3_000)), two)
    assert "leaves a coin of the first out" in verdict(seen).sentence
    assert not seen.allowed


def test_s11_two_payments_that_were_one_are_no_fee_bump() -> None:
    halves = neighbour_of(snapshot_of(spend_of((1,), (("shop", 25_000), ("shop", 25_000))), "p-1"))
    assert not found(bump(spend_of((1,), SHOP, 2_000)), halves).allowed
    assert not found(bump(spend_of((1,), (("shop", 25_000),), 2_000)), halves).allowed
    assert found(bump(spend_of((1,), (("shop", 25_000), ("shop", 25_000)), 2_000)), halves).allowed


def test_s11_data_is_kept_to_the_byte() -> None:
    first = neighbour_of(snapshot_of(spend_of((1,), SHOP, data=b"order 7"), "p-1"))
    assert found(bump(spend_of((1,), SHOP, 2_000, data=b"order 7")), first).allowed
    for data in (b"order 8", None):
        assert not found(bump(spend_of((1,), SHOP, 2_000, data=data)), first).allowed


def test_s11_the_same_rules_hold_where_the_first_is_not_signed_here() -> None:
    waiting = neighbour_of(FIRST, State.WAITING_PERSON, signed=False)
    seen = found(bump(spend_of((1,), SHOP, 2_000)), waiting)
    assert seen.allowed
    assert verdict(seen, "conflict").outcome is Outcome.WARN
    assert not found(bump(spend_of((1,), (("thief", 50_000),), 2_000)), waiting).allowed


def test_s11_what_cannot_be_compared_is_held() -> None:
    other = neighbour_of(snapshot_of(spend_of((1,), SHOP, policy=make_vault(account=1)), "p-1"))
    for known in ((), (other,), (neighbour_of(shop(psbt_id="p-0")),)):
        seen = found(bump(spend_of((1,), SHOP, 2_000)), *known)
        assert "replacement" in seen.to_acknowledge
        assert "cannot compare" in verdict(seen).sentence


def test_a_rise_that_not_every_node_passes_on_is_shown() -> None:
    seen = found(bump(spend_of((1,), SHOP, 1_010)), SIGNED)
    assert seen.allowed
    assert verdict(seen).outcome is Outcome.WARN
    assert "not every node" in verdict(seen).sentence


def test_what_replaces_nothing_says_so() -> None:
    assert verdict(found(FIRST)).sentence == "It does not say that it replaces another proposal."


def test_l8_the_platforms_word_for_the_replaced_one_is_made_plain_and_short() -> None:
    sentence = verdict(found(bump(spend_of((1,), SHOP, 2_000), replaces="\x1b[2J" + "x" * 500))).sentence
    assert "\x1b" not in sentence
    assert "x" * 65 not in sentence


# --- cancels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replaces", ["p-1", None])
def test_s6_a_cancel_passes_declared_or_not(replaces: str | None) -> None:
    seen = found(bump(spend_of((1,), (), 2_000), replaces=replaces), SIGNED)
    assert seen.allowed
    assert not seen.to_acknowledge
    assert "It pays nobody: of it and p-1 only one can confirm." in verdict(seen, "conflict").sentence
    if replaces:
        assert verdict(seen).sentence.startswith("It takes p-1 back")


def test_s6_what_carries_data_is_no_cancel() -> None:
    seen = found(snapshot_of(spend_of((1,), (), 2_000, data=b"hello"), "p-2"), SIGNED)
    assert seen.to_acknowledge == {"conflict"}


def test_a_cancel_that_stops_nothing_is_refused_and_a_cheap_one_is_shown() -> None:
    assert "stops nothing" in verdict(found(bump(spend_of((2,), (), 2_000)), SIGNED)).sentence
    cheap = found(bump(spend_of((1,), (), 900)), SIGNED)
    assert cheap.allowed
    assert verdict(cheap).outcome is Outcome.WARN


def test_s1_s6_a_cancel_that_says_that_it_comes_back_and_does_not_is_refused() -> None:
    honest = spend_of((1,), (), 2_000)
    stolen = with_output(honest, 0, script_pubkey=pay(1, "thief").script_pubkey)
    seen = found(snapshot_of(stolen, "p-2", recipients=(), amounts=(), replaces="p-1"), SIGNED)
    assert {"fake-change", "replacement", "recipients"} <= {v.name for v in seen.refusals}
