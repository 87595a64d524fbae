"""Every named check: what passes, what is refused, and that the refusal carries its stable name."""

from dataclasses import replace

import pytest

from custody.schemas.proposals import TxType
from multisig import (
    RECEIVE,
    ChangeTo,
    FeeRate,
    Network,
    OutPoint,
    Psbt,
    TxOut,
    Vault,
    build_psbt,
    op_return_script,
    sats,
)
from signerd.core.checks.case import Outcome
from signerd.core.review import Review, review
from signerd.core.states import State
from signerd.core.values import Limits, Neighbour, ReviewContext, Snapshot
from tests.support.desk import NETWORK, VAULT, make_pin, own_keys, review_context, snapshot_of, spend
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, fund, make_vault, pay, with_input, with_output


def outcome(found: Review, name: str) -> Outcome | None:
    return next((verdict.outcome for verdict in found.verdicts if verdict.name == name), None)


def refused_by(snapshot: Snapshot, around: ReviewContext | None = None) -> set[str]:
    found = review(snapshot, around or review_context())
    assert not found.allowed
    return {verdict.name for verdict in found.refusals}


def test_an_honest_proposal_is_allowed_by_every_check() -> None:
    found = review(snapshot_of(spend()), review_context())
    assert found.allowed
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.ALLOW}
    assert len({verdict.name for verdict in found.verdicts}) == len(found.verdicts)
    assert found.inspection is not None
    assert all(verdict.sentence.endswith(".") for verdict in found.verdicts)


def test_s23_an_unreadable_psbt_is_refused_not_raised() -> None:
    assert refused_by(snapshot_of(b"psbt\xff" + b"\x00" * 9)) == {"psbt-readable"}


def test_a_kind_that_cannot_be_checked_is_refused() -> None:
    assert refused_by(snapshot_of(spend(), kind=TxType.CALL)) == {"kind-known"}


def test_s16_a_vault_that_is_not_pinned_is_refused() -> None:
    assert "vault-pinned" in refused_by(snapshot_of(spend()), review_context(pin=None))


@pytest.mark.parametrize(
    "claimed",
    [
        make_vault((ALICE, BOB, MALLORY)).descriptor,
        make_vault(threshold=1).descriptor,
        make_vault(account=1).descriptor,
        "wsh(sortedmulti(2))#00000000",
        None,
    ],
)
def test_s16_a_vault_that_changed_after_pinning_is_refused(claimed: str | None) -> None:
    assert "vault-unchanged" in refused_by(snapshot_of(spend()), review_context(claimed_descriptor=claimed))


def test_the_order_in_which_the_platform_lists_the_cosigners_means_nothing() -> None:
    listed = make_vault((CAROL, ALICE, BOB)).descriptor
    assert review(snapshot_of(spend()), review_context(claimed_descriptor=listed)).allowed


def test_s14_another_network_is_refused() -> None:
    assert "network" in refused_by(snapshot_of(spend(), workspace_network="mainnet"))
    assert "network" in refused_by(snapshot_of(spend()), review_context(network=Network.SIGNET))


def test_s14_a_pinned_vault_in_another_workspace_is_refused() -> None:
    assert refused_by(snapshot_of(spend(), workspace_id=2)) == {"vault-pinned"}


def test_s15_a_quorum_without_our_exact_key_is_refused() -> None:
    assert "own-key" in refused_by(snapshot_of(spend()), review_context(own_keys=own_keys(MALLORY)))
    assert "own-key" in refused_by(snapshot_of(spend()), review_context(own_keys=()))
    # The right device, but an account that it never gave.
    assert "own-key" in refused_by(snapshot_of(spend()), review_context(own_keys=own_keys()[1:]))


def test_s1_fake_change_is_refused_under_the_findings_own_code() -> None:
    psbt = spend()
    foreign = with_output(psbt, 1, script_pubkey=pay(1, "thief").script_pubkey)
    lied = replace(snapshot_of(psbt), psbt=foreign.to_bytes(), txid_expected=foreign.tx.txid)
    assert {"transaction", "fake-change", "recipients"} <= refused_by(lied)


def test_s8_another_sighash_is_refused() -> None:
    psbt = with_input(spend(), 0, sighash_type=0x83)
    assert {"transaction", "sighash-not-all"} <= refused_by(snapshot_of(psbt))


def test_s5_a_missing_previous_transaction_is_refused() -> None:
    psbt = with_input(spend(), 1, non_witness_utxo=None)
    assert {"transaction", "previous-transaction-missing"} <= refused_by(snapshot_of(psbt))


def test_s3_the_input_of_another_wallet_is_refused() -> None:
    other = make_vault((BOB, CAROL, MALLORY))
    psbt = build_psbt(other, [fund(other, 90_000)], [pay(50_000), ChangeTo(sats(39_000), 1, 0)], 0)
    assert "input-not-ours" in refused_by(snapshot_of(psbt))


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        ({"recipients": ("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",)}, "recipients"),
        ({"recipients": ("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",)}, "recipients"),
        ({"recipients": (), "amounts": ()}, "recipients"),
        ({"amounts": (49_999,)}, "amounts"),
        ({"amounts": ()}, "amounts"),
        ({"fee": 999}, "fee-recorded"),
        ({"txid_expected": "00" * 32}, "transaction-id"),
        ({"op_return": "hello"}, "data"),
    ],
)
def test_s12_a_transaction_that_differs_from_the_recorded_intent_is_refused(
    lie: dict[str, object], check: str
) -> None:
    assert check in refused_by(snapshot_of(spend(), **lie))


def test_s12_swapped_amounts_of_two_recipients_are_refused() -> None:
    coins = [fund(VAULT, 200_000)]
    outputs = [pay(50_000, "a"), pay(60_000, "b"), ChangeTo(sats(89_000), 1, 0)]
    honest = snapshot_of(build_psbt(VAULT, coins, outputs, 0))
    assert review(honest, review_context()).allowed
    swapped = replace(honest, amounts=tuple(reversed(honest.amounts)))
    assert refused_by(swapped) == {"amounts"}


def test_a_payment_to_the_vault_itself_counts_as_the_recorded_one() -> None:
    coins = [fund(VAULT, 200_000)]
    psbt = build_psbt(VAULT, coins, [ChangeTo(sats(50_000), RECEIVE, 5), ChangeTo(sats(149_000), 1, 0)], 0)
    to_self = snapshot_of(psbt, recipients=(VAULT.address(RECEIVE, 5),), amounts=(50_000,))
    assert review(to_self, review_context()).allowed


@pytest.mark.parametrize("recorded", ["0x68656c6c6f", "hello"])
def test_s10_recorded_data_passes_and_other_data_does_not(recorded: str) -> None:
    data = TxOut(sats(0), op_return_script(b"hello"))
    psbt = build_psbt(VAULT, [fund(VAULT, 200_000)], [data, ChangeTo(sats(199_000), 1, 0)], 0)
    assert review(snapshot_of(psbt, op_return=recorded), review_context()).allowed
    assert "data" in refused_by(snapshot_of(psbt, op_return=None))
    assert "data" in refused_by(snapshot_of(psbt, op_return="0xzz"))


def limits(**changes: object) -> ReviewContext:
    return review_context(limits=replace(Limits(), **changes))


def test_s7_fee_limits_refuse_at_the_configured_figures() -> None:
    usual = snapshot_of(spend(fee=1_000))
    assert review(usual, limits(max_fee=sats(1_000))).allowed
    assert refused_by(usual, limits(max_fee=sats(999))) == {"fee-total"}
    found = review(usual, review_context())
    assert found.inspection is not None
    rate = found.inspection.fee_rate.sat_per_kvb
    assert review(usual, limits(max_fee_rate=FeeRate(rate))).allowed
    assert refused_by(usual, limits(max_fee_rate=FeeRate(rate - 1))) == {"fee-rate"}


def test_s7_the_fees_share_warns_at_five_and_refuses_at_ten_percent() -> None:
    def share(fee: int) -> Outcome | None:
        return outcome(review(snapshot_of(spend(fee=fee)), review_context()), "fee-share")

    # Inputs hold 200,000: fee 9,523 is 4.99 % of the outputs, 9,524 just over 5 %; 18,182 just over 10 %.
    assert share(9_523) is Outcome.ALLOW
    assert share(9_524) is Outcome.WARN
    assert share(18_181) is Outcome.WARN
    assert share(18_182) is Outcome.REFUSE


def neighbour(psbt: Psbt, psbt_id: str = "p-0", *, state: State, signed: bool) -> Neighbour:
    return Neighbour(
        psbt_id,
        state,
        signed,
        frozenset(item.outpoint for item in psbt.inputs),
        frozenset((o.script_pubkey, int(o.amount)) for o in psbt.outputs),
    )


def test_s25_an_open_proposal_over_the_same_coins_is_shown() -> None:
    rival = neighbour(spend(fee=2_000), state=State.WAITING_PERSON, signed=False)
    found = review(snapshot_of(spend()), review_context(neighbours=(rival,)))
    assert outcome(found, "conflict") is Outcome.WARN
    assert found.allowed
    assert not found.to_acknowledge


def test_s6_a_signed_proposal_over_the_same_coins_must_be_acknowledged() -> None:
    rival = neighbour(spend(fee=2_000), state=State.SUBMITTED, signed=True)
    found = review(snapshot_of(spend()), review_context(neighbours=(rival,)))
    assert found.to_acknowledge == {"conflict"}
    assert outcome(found, "paid-twice") is Outcome.ALLOW


def again() -> Psbt:
    """The same payment from other coins."""
    coins = [fund(VAULT, 100_000, index=index, salt=9) for index in range(2)]
    return build_psbt(VAULT, coins, [pay(50_000), ChangeTo(sats(149_000), 1, 8)], 0)


@pytest.mark.parametrize(
    ("state", "signed", "held"),
    [
        (State.SUBMITTED, True, True),
        (State.BROADCAST, True, True),
        (State.WITHDRAWN, True, True),
        (State.EXPIRED, True, True),
        (State.QUARANTINED, True, True),
        (State.CONFIRMED, True, True),
        # The device works on it: its signature may be here in a moment.
        (State.SIGNING, False, True),
        (State.VERIFYING, False, True),
        # Not ours, but the platform says that the others completed it.
        (State.BROADCAST, False, True),
        (State.WAITING_PERSON, False, False),
        (State.DECLINED, False, False),
    ],
)
def test_s6_the_same_payment_again_is_held_whatever_the_platform_says_of_the_first(
    state: State, signed: bool, held: bool
) -> None:
    first = neighbour(spend(), state=state, signed=signed)
    found = review(snapshot_of(again(), "p-2"), review_context(neighbours=(first,)))
    assert ("paid-twice" in found.to_acknowledge) is held


def test_s6_another_amount_or_another_recipient_is_not_held() -> None:
    coins = [fund(VAULT, 100_000, salt=9)]
    first = neighbour(spend(), state=State.SUBMITTED, signed=True)
    for payment in (pay(50_001), pay(50_000, "other")):
        psbt = build_psbt(VAULT, coins, [payment, ChangeTo(sats(49_000), 1, 8)], 0)
        found = review(snapshot_of(psbt, "p-2"), review_context(neighbours=(first,)))
        assert not found.to_acknowledge


def test_s24_the_digest_covers_everything_that_is_shown() -> None:
    base = snapshot_of(spend())
    other_vault = Vault(NETWORK, 2, (ALICE.vault_key(), BOB.vault_key(), MALLORY.vault_key()))
    digests = [
        review(snapshot, around).digest
        for snapshot, around in [
            (base, review_context()),
            (replace(base, description="Invoice 8"), review_context()),
            (replace(base, created_by="9"), review_context()),
            (replace(base, psbt_id="p-9"), review_context()),
            (replace(base, fee=999), review_context()),
            (snapshot_of(spend(fee=1_001)), review_context()),
            (base, review_context(pin=make_pin(other_vault))),
            (base, review_context(pin=None)),
            (base, review_context(pin=replace(make_pin(), name="Petty cash"))),
            (base, limits(max_fee=sats(999))),
            (base, review_context(neighbours=(neighbour(again(), state=State.SUBMITTED, signed=True),))),
        ]
    ]
    assert len(set(digests)) == len(digests)


def test_a_colleagues_signature_does_not_undo_an_approval() -> None:
    psbt = spend()
    assert (
        review(snapshot_of(psbt), review_context()).digest
        == review(snapshot_of(BOB.sign(psbt), collected=1), review_context()).digest
    )


def test_a_neighbour_that_shares_nothing_is_silent() -> None:
    stranger = Neighbour(
        "p-8",
        State.SUBMITTED,
        signed=True,
        outpoints=frozenset({OutPoint("11" * 32, 0)}),
        payments=frozenset(),
    )
    found = review(snapshot_of(spend()), review_context(neighbours=(stranger,)))
    assert found.digest == review(snapshot_of(spend()), review_context()).digest
