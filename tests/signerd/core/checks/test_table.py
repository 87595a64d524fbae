"""The one table of checks: it lists what a review can say and nothing else, and what may be lowered is
harmless. Fee limits, the digest of all that is shown, and names that are labels only.
"""

import re
from collections import Counter
from dataclasses import replace

import pytest

from custody.common.pages.figures import sentence
from multisig import ChangeTo, FeeRate, FindingCode, Psbt, Vault, build_psbt, sats
from signerd.core.checks.case import Outcome, Verdict, allow, hold, refuse, warn
from signerd.core.checks.table import (
    CHECKS,
    LOWERABLE,
    LOWERED,
    UNTOUCHABLE,
    Check,
    JudgedKind,
    Stage,
    by_name,
    lower,
    not_compared,
)
from signerd.core.review import ProposalReview, review
from signerd.core.rules.values import RULE_NAMES
from signerd.core.states import State
from signerd.core.values import Imported, Neighbour, ReviewContext, SigningLimits, Snapshot
from tests.support.desk import NETWORK, VAULT, claim, make_pin, refused_by, review_context, snapshot_of, spend
from tests.support.payments import neighbour_of
from tests.support.tokens import call, token_snapshot
from tests.support.wallets import ALICE, BOB, MALLORY, fund, pay

HONEST = snapshot_of(spend())


IMPORTED = replace(HONEST, imported=Imported("App", "app-1", 0))
OF_EVERY_KIND = {
    JudgedKind.PAYMENT: HONEST,
    JudgedKind.TOKEN: token_snapshot(call()),
    JudgedKind.IMPORTED: IMPORTED,
    JudgedKind.IMPORTED_OF_PROFILE: replace(IMPORTED, vault_id=""),
}


def names(verdicts) -> list[str]:
    return [verdict.name for verdict in verdicts]


def ran(kind: JudgedKind, *stages: Stage) -> list[str]:
    return [c.name for c in CHECKS.values() if c.run is not None and c.stage in stages and kind in c.of]


@pytest.mark.parametrize("kind", OF_EVERY_KIND)
def test_a_review_runs_the_rows_of_its_kind_in_their_order(kind: JudgedKind) -> None:
    found = review(OF_EVERY_KIND[kind], review_context())
    stages = [Stage.BEFORE] if found.inspection is None else [Stage.BEFORE, Stage.INSPECTION, Stage.AFTER]
    assert names(found.verdicts) == ran(kind, *stages)
    assert (found.inspection is None) is (kind is JudgedKind.IMPORTED_OF_PROFILE)


def test_the_table_lists_exactly_what_a_review_can_say() -> None:
    unreadable = names(review(snapshot_of(b"psbt?"), review_context()).verdicts)
    lowered = review(HONEST, review_context(lowered=frozenset(LOWERABLE))).verdicts[-1].name
    of_the_review = {*unreadable, lowered, *RULE_NAMES, *(code.value for code in FindingCode)}
    assert (unreadable, lowered) == (["psbt-readable"], LOWERED)
    assert {name for name, check in CHECKS.items() if check.run is None} == of_the_review
    assert all(name == check.name for name, check in CHECKS.items())
    assert max(Counter(check.run for check in CHECKS.values() if check.run).values()) == 1


def test_no_check_takes_the_place_of_another_or_is_never_run() -> None:
    with pytest.raises(ValueError, match="two checks are called 'recipients'"):
        by_name((*CHECKS.values(), replace(CHECKS["recipients"], sentence="The same, for tokens.")))
    with pytest.raises(ValueError, match="would never be run"):
        Check("silent", (), Stage.AFTER, "It looks at nothing.")


def test_what_compares_with_a_record_does_not_run_without_one() -> None:
    compared = ("transaction-id", "recipients", "amounts", "fee-recorded", "replacement")
    assert not_compared(JudgedKind.IMPORTED) == not_compared(JudgedKind.IMPORTED_OF_PROFILE) == compared
    assert not_compared(JudgedKind.PAYMENT) == not_compared(JudgedKind.TOKEN) == ()


def test_what_stands_against_an_attack_on_the_money_may_not_be_lowered() -> None:
    assert {"S1", "S5", "S8", "S13", "S16", "S19", "S23", "S24"} <= UNTOUCHABLE
    assert LOWERABLE == ("conflict", "fee-recorded", "fee-share", "locktime")
    for number in UNTOUCHABLE:
        with pytest.raises(ValueError, match="may not be lowered"):
            replace(CHECKS["locktime"], attacks=("S30", number))


@pytest.mark.parametrize("name", sorted(set(CHECKS) - set(LOWERABLE)))
def test_what_may_not_be_lowered_stays_whatever_is_asked(name: str) -> None:
    judged = (refuse("No.").under(name), hold("Hold.").under(name))
    assert lower(judged, frozenset({name})) == judged


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("fee-share", refuse("No.", a=1), hold("No.", a=1)),
        ("fee-share", warn("W."), warn("W.")),
        ("locktime", allow("A."), allow("A.")),
        ("locktime", hold("H.", a=1), warn("H.", a=1)),
        ("conflict", refuse("R."), refuse("R.")),
    ],
)
def test_lowering_goes_one_step_and_never_up(name: str, before: Verdict, after: Verdict) -> None:
    assert lower((before.under(name),), frozenset(LOWERABLE))[0] == after.under(name)


def rival() -> ReviewContext:
    coins = frozenset(item.outpoint for item in spend().inputs)
    first = Neighbour("p-0", State.SUBMITTED, signed=True, outpoints=coins, payments=frozenset())
    return review_context(neighbours=(first,))


@pytest.mark.parametrize(
    ("name", "snapshot", "context"),
    [
        ("fee-share", snapshot_of(spend(fee=18_182)), review_context()),
        ("fee-recorded", replace(HONEST, fee=999), review_context()),
        ("conflict", HONEST, rival()),
        ("locktime", snapshot_of(spend(locktime=200_000)), review_context()),
    ],
)
def test_a_lowered_check_still_speaks_and_the_review_says_that_it_was_lowered(
    name: str, snapshot: Snapshot, context: ReviewContext
) -> None:
    strict = review(snapshot, context)
    assert not strict.allowed or name in strict.to_acknowledge
    found = review(snapshot, replace(context, lowered=frozenset({name})))
    assert found.allowed
    (verdict,) = [v for v in found.verdicts if v.name == name]
    assert verdict.outcome is Outcome.WARN
    assert verdict.acknowledge is (CHECKS[name].lowered == "hold")
    told = found.verdicts[-1]
    assert (told.name, told.outcome, told.figures) == (LOWERED, Outcome.WARN, {"checks": name})
    assert found.digest != strict.digest


def test_s7_the_hard_limits_stand_above_what_is_lowered() -> None:
    # Of inputs of 200,000 satoshis: more than half.
    found = review(snapshot_of(spend(fee=100_001)), review_context(lowered=frozenset(LOWERABLE)))
    assert {verdict.name for verdict in found.refusals} == {"transaction", "fee-above-limit"}


def test_every_review_says_what_is_lowered_also_where_it_changes_nothing() -> None:
    context = review_context(lowered=frozenset({"locktime", "fee-share"}))
    for snapshot, surrounding in [(snapshot_of(b"garbage"), context), (HONEST, replace(context, pin=None))]:
        assert review(snapshot, surrounding).verdicts[-1].figures == {"checks": "fee-share, locktime"}
    untouched = review(HONEST, review_context(lowered=frozenset({"own-key"})))
    assert LOWERED not in {verdict.name for verdict in untouched.verdicts}


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


def outcome(found: ProposalReview, name: str) -> Outcome | None:
    return next((verdict.outcome for verdict in found.verdicts if verdict.name == name), None)


def limits(**changes: object) -> ReviewContext:
    return review_context(limits=replace(SigningLimits(), **changes))


def test_s7_fee_limits_refuse_at_the_configured_figures() -> None:
    usual = snapshot_of(spend(fee=1_000))
    assert review(usual, limits(max_fee=sats(1_000))).allowed
    (refusal,) = review(usual, limits(max_fee=sats(999))).refusals
    assert (refusal.name, refusal.figures) == ("fee-total", {"fee_sats": 1_000, "limit_sats": 999})
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
