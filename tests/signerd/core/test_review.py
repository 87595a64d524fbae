"""Every named check: what passes, what is refused, and that the refusal carries its stable name."""

from dataclasses import replace

from multisig import (
    ChangeTo,
    FeeRate,
    Psbt,
    Vault,
    build_psbt,
    sats,
)
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, review
from signerd.core.values import ReviewContext, SigningLimits, Snapshot
from tests.support.desk import NETWORK, VAULT, make_pin, review_context, snapshot_of, spend
from tests.support.payments import neighbour_of
from tests.support.wallets import ALICE, BOB, MALLORY, fund, pay


def outcome(found: ProposalReview, name: str) -> Outcome | None:
    return next((verdict.outcome for verdict in found.verdicts if verdict.name == name), None)


def refused_by(snapshot: Snapshot, context: ReviewContext | None = None) -> set[str]:
    found = review(snapshot, context or review_context())
    assert not found.allowed
    return {verdict.name for verdict in found.refusals}


def limits(**changes: object) -> ReviewContext:
    return review_context(limits=replace(SigningLimits(), **changes))


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


def again() -> Psbt:
    """The same payment from other coins."""
    coins = [fund(VAULT, 100_000, index=index, salt=9) for index in range(2)]
    return build_psbt(VAULT, coins, [pay(50_000), ChangeTo(sats(149_000), 1, 8)], 0)


def test_s24_the_digest_covers_everything_that_is_shown() -> None:
    base = snapshot_of(spend())
    other_vault = Vault(NETWORK, 2, (ALICE.vault_key(), BOB.vault_key(), MALLORY.vault_key()))
    digests = [
        review(snapshot, context).digest
        for snapshot, context in [
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
            (base, review_context(neighbours=(neighbour_of(snapshot_of(again())),))),
        ]
    ]
    assert len(set(digests)) == len(digests)
