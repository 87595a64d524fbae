"""Which other proposals the journal brings before the checks (S6, S11, S25), and what that costs (S34). Work
is counted in steps of SQLite's machine and calls, never in time; what is not compared holds, and a verdict
that is kept is the one that would be computed.
"""

from dataclasses import fields, replace

import pytest

from custody.schemas.proposals import ProposalStatus
from multisig import Psbt, build_psbt, sats
from signerd.core import events
from signerd.core.review import verdict_key
from signerd.core.states import State
from signerd.core.values import Neighbour, ReviewContext, SigningLimits, Snapshot
from signerd.errors import PlatformFloods
from signerd.journal import Journal, quota
from signerd.journal.rows import MOST_COMPARED
from tests.signerd.journal.test_journal import NOW, to_signed
from tests.support.backups import sign
from tests.support.desk import (
    NETWORK,
    VAULT,
    judge_again,
    read_rules,
    review_context,
    reviewed,
    snapshot_of,
)
from tests.support.payments import shop, spend_of
from tests.support.tokens import call, token_snapshot
from tests.support.wallets import fund, pay


def equal(count: int, coin: int) -> Psbt:
    return build_psbt(VAULT, [fund(VAULT, count * 600 + 2_000, salt=coin)], [pay(600)] * count, 0)


def over_one_coin(number: int, outputs: int = 4) -> Psbt:
    coin, small = fund(VAULT, 1_000_000, salt=1), [pay(1_000 + number + each) for each in range(outputs - 1)]
    rest = 1_000_000 - 2_000 - sum(int(output.amount) for output in small)
    return build_psbt(VAULT, [coin], [*small, pay(rest)], 0)


def test_s34_rivals_are_compared_up_to_a_number_and_the_rest_is_counted(journal: Journal) -> None:
    for number in range(MOST_COMPARED + 7):
        journal.poll(snapshot_of(over_one_coin(number), f"p-{number:03}"))
    context = journal.review_context(journal.record("p-000").snapshot)
    assert (len(context.neighbours), context.uncompared.open) == (MOST_COMPARED, 6)
    assert not any(neighbour.psbt for neighbour in context.neighbours), "none can confirm, so none is loaded"
    (told,) = [v for v in reviewed(journal, "p-000").verdicts if v.name == "conflict"]
    assert "and 6 more would spend some of the same coins" in told.sentence


def test_s34_no_decoy_hides_what_was_signed_here(journal: Journal) -> None:
    """The platform can say of any number of transactions that others completed them."""
    sign(journal, shop((1,), psbt_id="p-0"))
    for number in range(MOST_COMPARED + 3):
        over = shop((1,), 2_000 + number, f"d-{number}", status=ProposalStatus.BROADCASTING)
        beside = shop((100 + number,), psbt_id=f"e-{number}", status=ProposalStatus.CONFIRMED)
        for decoy in (over, beside):
            journal.poll(decoy)
    for coin, check in ((1, "conflict"), (2, "paid-twice")):
        journal.poll(shop((coin,), 9_000, f"p-{coin}"))
        (told,) = [v for v in reviewed(journal, f"p-{coin}").verdicts if v.name == check]
        assert told.acknowledge
        assert "UTC you signed p-0" in told.sentence
        assert "more" in told.sentence


def test_s34_what_is_not_compared_holds(journal: Journal) -> None:
    """Decoys that have nothing but the change in common are before one that makes the very payment."""
    bill = spend_of((1,), (("shop", 50_000),))
    change = int(bill.outputs[1].amount)
    journal.poll(
        snapshot_of(spend_of((2,), (("shop", 50_000),), 1_500), "p-0", status=ProposalStatus.CONFIRMED)
    )
    for number in range(MOST_COMPARED):
        decoy = spend_of((10 + number,), (("elsewhere", 99_000 - change),))
        assert int(decoy.outputs[1].amount) == change
        journal.poll(snapshot_of(decoy, f"d-{number}", status=ProposalStatus.CONFIRMED))
    journal.poll(snapshot_of(bill, "p-1"))
    assert reviewed(journal, "p-1").to_acknowledge == {"paid-twice"}


def test_s34_no_fee_bump_is_taken_for_one_where_not_all_are_compared(journal: Journal) -> None:
    sign(journal, shop(psbt_id="p-0"))
    for number in range(MOST_COMPARED):
        journal.poll(shop((1,), 2_000 + number, f"d-{number}", status=ProposalStatus.BROADCASTING))
    journal.poll(shop((1,), 9_000, "p-1", replaces="p-0"))
    assert not reviewed(journal, "p-1").to_acknowledge
    journal.poll(shop((1,), 8_000, "d-more", status=ProposalStatus.BROADCASTING))
    assert reviewed(journal, "p-1").to_acknowledge == {"conflict"}


def test_s34_a_word_about_a_large_transaction_counts_as_many(journal: Journal, monkeypatch) -> None:
    journal._quota.undecided.size = 4 * quota.WORK_OF_A_WORD
    journal.poll(snapshot_of(equal(29, 1), "p-1"))
    with pytest.raises(PlatformFloods, match="in a day"):
        journal.poll(snapshot_of(equal(19, 2), "p-2"))
    journal.poll(snapshot_of(equal(2, 3), "p-3"))


@pytest.mark.parametrize("name", [field.name for field in fields(ReviewContext)])
def test_s34_nothing_of_the_context_is_left_out_of_a_verdicts_key(name: str) -> None:
    assert verdict_key(snapshot_of(equal(2, 1)), replace(review_context(), **{name: object()})) is None


@pytest.mark.parametrize("name", [field.name for field in fields(Snapshot)])
def test_s34_nothing_of_the_proposal_is_left_out_of_a_verdicts_key(name: str) -> None:
    assert verdict_key(replace(snapshot_of(equal(2, 1)), **{name: object()}), review_context()) is None


# The example of docs/sign/rules.md that has every kind, but those of single vaults.
RULES_OF_EVERY_KIND = """
[refuse]
above_per_day = "5 BTC"
except_to = ["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]
[ask]
above_per_transaction = "0.5 BTC"
any_token = true
always = true
"""


def test_s34_every_kind_of_rule_and_fact_has_one_form(journal: Journal) -> None:
    """Else nothing would be kept."""
    sign(journal, shop((1,), psbt_id="p-0"))
    journal.rules = read_rules(RULES_OF_EVERY_KIND, NETWORK)
    journal.poll(token_snapshot(call()))
    journal.poll(shop((1,), 3_000, "p-1", replaces="p-0"))
    for psbt_id in ("t-1", "p-1"):
        snapshot = journal.record(psbt_id).snapshot
        first, again = (verdict_key(snapshot, journal.review_context(snapshot)) for _ in range(2))
        assert first == again is not None


def test_s34_no_verdict_is_kept_for_what_was_decided_since(journal: Journal) -> None:
    """Judged by the old limits, refused by others when the device was found, and the old ones are back."""
    usual = journal.limits
    journal.poll(shop())
    journal.decide("p-1", events.Approved(reviewed(journal, "p-1").digest))
    journal.limits = SigningLimits(max_fee=sats(1))
    assert journal.decide("p-1", events.DeviceFound("d")).record.state is State.REFUSED
    journal.limits = usual
    judge_again(journal)
    assert journal.record("p-1").state is State.WAITING_PERSON


def neighbours(journal: Journal, psbt_id: str) -> dict[str, Neighbour]:
    context = journal.review_context(journal.record(psbt_id).snapshot)
    return {neighbour.psbt_id: neighbour for neighbour in context.neighbours}


def held(journal: Journal, psbt_id: str) -> frozenset[str]:
    return reviewed(journal, psbt_id).to_acknowledge


def test_s6_what_was_signed_is_known_as_it_was_signed_and_when(journal: Journal) -> None:
    to_signed(journal, shop())
    # The platform shows another PSBT of the same transaction since, without a word about its coins.
    bare = Psbt.parse(shop().psbt)
    bare = replace(bare, inputs=tuple(replace(item, non_witness_utxo=None) for item in bare.inputs))
    journal.poll(replace(shop(), psbt=bare.to_bytes()))
    journal.poll(shop((1,), 3_000, "p-2", replaces="p-1"))
    first = neighbours(journal, "p-2")["p-1"]
    record = journal.record("p-1")
    assert record.signature is not None
    assert (first.signed, first.signed_at, first.psbt) == (True, NOW, record.signature.psbt)
    assert not held(journal, "p-2")
    assert reviewed(journal, "p-2").allowed


def test_s11_what_is_said_to_be_replaced_is_looked_up_whatever_it_spends_and_pays(journal: Journal) -> None:
    journal.poll(shop())
    journal.poll(snapshot_of(spend_of((2,), (("cafe", 20_000),)), "p-2"))
    assert neighbours(journal, "p-2") == {}
    journal.poll(replace(journal.record("p-2").snapshot, replaces="p-1"))
    assert set(neighbours(journal, "p-2")) == {"p-1"}
    assert "replacement" in {verdict.name for verdict in reviewed(journal, "p-2").refusals}
    assert journal.record("p-2").state is State.REFUSED


def test_s25_a_coin_is_the_same_coin_under_another_vaults_name(journal: Journal) -> None:
    journal.poll(shop(vault_id="vault-2", status=ProposalStatus.BROADCASTING))
    journal.poll(shop((1,), 3_000, "p-2"))
    assert set(neighbours(journal, "p-2")) == {"p-1"}


def test_s27_what_others_signed_and_this_machine_did_not_is_shown_before_a_yes(journal: Journal) -> None:
    journal.poll(shop(collected=1))
    journal.poll(shop((2,), psbt_id="p-2"))
    (told,) = [v for v in reviewed(journal, "p-2").verdicts if v.name == "signed-by-others"]
    assert told.acknowledge
    assert "p-1 (1 of 2 signatures, waiting-for-person here)" in told.sentence
    # No word of the platform's about its end takes a signature back.
    journal.poll(shop(collected=1, status=ProposalStatus.EXPIRED))
    assert held(journal, "p-2") == {"signed-by-others"}
    # Nor does a lower count, for which the first would be forgotten when room is made.
    journal.poll(shop(collected=0, status=ProposalStatus.EXPIRED))
    assert held(journal, "p-2") == {"signed-by-others"}
    assert journal._quota._forget() == 0
    # What spends the same coins cannot be paid beside it.
    journal.poll(shop((1,), 3_000, "p-3"))
    assert "signed-by-others" not in held(journal, "p-3")


def test_s27_a_yes_that_was_given_before_the_others_signed_is_asked_for_again(journal: Journal) -> None:
    journal.poll(shop())
    journal.poll(shop((2,), psbt_id="p-2"))
    journal.decide("p-2", events.Approved(reviewed(journal, "p-2").digest))
    journal.poll(shop(collected=2**70))
    assert journal.decide("p-2", events.DeviceFound("d")).record.state is State.WAITING_PERSON
    assert held(journal, "p-2") == {"signed-by-others"}
