"""Token proposals: proven names, words compared with bytes, and nothing beside the call (S12, S13)."""

from dataclasses import replace
from typing import Any

import pytest

from custody.schemas.proposals import TxType
from multisig import RECEIVE, ChangeTo, Psbt, TxOut, build_psbt, op_return_script, sats
from multisig.tokens import Function, token_amount
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, review
from signerd.core.states import State
from signerd.core.tokens import TokenClaim
from signerd.core.values import Neighbour, ReviewContext, Snapshot
from tests.support.desk import VAULT, review_context, snapshot_of
from tests.support.tokens import GOLD, call, claim_of, gold, token_psbt, token_snapshot
from tests.support.wallets import fund, make_vault

KNOWING = review_context(token=GOLD)


def refused_by(snapshot: Snapshot, context: ReviewContext = KNOWING) -> set[str]:
    found = review(snapshot, context)
    assert not found.allowed
    return {verdict.name for verdict in found.refusals} - {"transaction"}


def sentence(found: ProposalReview, name: str) -> str:
    return next(verdict.sentence for verdict in found.verdicts if verdict.name == name)


@pytest.mark.parametrize("function", Function)
def test_an_honest_call_of_every_function_is_allowed(function: Function) -> None:
    found = review(token_snapshot(call(function)), KNOWING)
    assert found.allowed
    assert found.token == GOLD
    held = {"token-effect"} if function is Function.TRANSFER_OWNERSHIP else set()
    assert found.to_acknowledge == held
    assert all(v.outcome is Outcome.ALLOW for v in found.verdicts if v.name not in held)


def test_its_amount_is_told_in_whole_tokens_of_the_proven_token() -> None:
    found = review(token_snapshot(call(amount=1_250)), KNOWING)
    assert "Send 12.50 GOLD tokens to bcrt1" in sentence(found, "token-call")
    assert "'Gold of the House'" in sentence(found, "token-known")


@pytest.mark.parametrize(
    "other",
    [gold(decimals=8), gold(ticker="SAND"), gold(max_supply=GOLD.max_supply + 1)],
    ids=["decimals", "ticker", "supply"],
)
def test_s12_a_deployment_whose_bytecode_says_something_else_is_refused(other) -> None:
    """Though its hash were the right one: the payload and the bytecode must say the same."""
    found = review(token_snapshot(GOLD.deployment), review_context(token=other))
    assert "token-known" in {v.name for v in found.refusals}
    assert found.token is None


LIES = {
    "whole tokens for raw units": claim_of(call(), amount_raw="12.50"),
    "no amount": claim_of(call(), amount_raw=None),
    "no function": claim_of(call(), function=None),
    "a supply that no call has": claim_of(call(), max_supply="1"),
}


@pytest.mark.parametrize("lie", LIES)
def test_s12_other_words_than_the_bytes_are_refused(lie: str) -> None:
    assert refused_by(token_snapshot(call(), call=LIES[lie])) == {"token-call"}


@pytest.mark.parametrize(
    "name", ["decimals", "ticker", "max_supply", "bytecode_hash", "contract_id", "function"]
)
def test_s12_other_words_than_a_deployment_s_bytes_are_refused(name: str) -> None:
    honest = dict(claim_of(GOLD.deployment, token_psbt(GOLD.deployment).tx.txid).told)
    told = TokenClaim(tuple({**honest, name: "7"}.items()))
    assert refused_by(token_snapshot(GOLD.deployment, call=told)) == {"token-call"}


def test_the_cancel_of_a_call_pays_no_one() -> None:
    back = build_psbt(VAULT, [fund(VAULT, 100_000)], [ChangeTo(sats(97_000), RECEIVE, 0)], 0)
    context = review_context(token=GOLD, neighbours=(signed(token_psbt(call())),))
    cancel = snapshot_of(back, kind=TxType.CALL, replaces="t-0")
    found = review(cancel, context)
    assert found.allowed
    assert not found.to_acknowledge


def test_s12_nothing_is_taken_back_whose_coins_are_not_proven_the_vaults() -> None:
    stranger = make_vault(account=1)
    psbt = build_psbt(stranger, [fund(stranger, 100_000)], [ChangeTo(sats(97_000), RECEIVE, 0)], 0)
    assert refused_by(snapshot_of(psbt, kind=TxType.CALL, replaces="t-0")) == {"kind-known"}


HOME = ChangeTo(sats(99_000), RECEIVE, 0)
UNDECODABLE = build_psbt(
    VAULT, [fund(VAULT, 100_000)], [HOME, TxOut(sats(0), op_return_script(b"CPT\x12"))], 0
)


@pytest.mark.parametrize(
    ("kind", "psbt"),
    [
        (TxType.DEPLOY, token_psbt(call())),
        (TxType.CALL, token_psbt(GOLD.deployment)),
        (TxType.CALL, build_psbt(VAULT, [fund(VAULT, 100_000)], [HOME], 0)),
        (TxType.CALL, UNDECODABLE),
    ],
    ids=["a call called a deployment", "a deployment called a call", "no data", "undecodable data"],
)  # fmt: skip
def test_s12_what_is_not_of_its_kind_is_refused(kind: TxType, psbt: Psbt) -> None:
    assert refused_by(snapshot_of(psbt, kind=kind)) == {"kind-known"}


def test_recorded_recipients_change_nothing() -> None:
    """The platform records whom a call names besides; no output pays them."""
    snapshot = token_snapshot(call(), recipients=(VAULT.address(0, 0),))
    assert review(snapshot, KNOWING).allowed


def signed(psbt: Psbt) -> Neighbour:
    coins = frozenset(item.outpoint for item in psbt.inputs)
    payments = frozenset((o.script_pubkey, int(o.amount)) for o in psbt.outputs)
    return Neighbour(
        "t-0", State.SUBMITTED, signed=True, outpoints=coins, payments=payments, psbt=psbt.to_bytes()
    )


@pytest.mark.parametrize("function", Function)
def test_s6_the_same_amount_once_more_from_other_coins_is_held(function: Function) -> None:
    context = review_context(token=GOLD, neighbours=(signed(token_psbt(call(function), salt=5)),))
    held = review(token_snapshot(call(function)), context).to_acknowledge
    assert ("token-twice" in held) is function.takes_amount


def test_s6_what_only_others_signed_is_not_called_signed_here() -> None:
    """It may confirm all the same."""
    theirs = replace(signed(token_psbt(GOLD.deployment, salt=5)), signed=False)
    found = review(token_snapshot(GOLD.deployment), review_context(token=GOLD, neighbours=(theirs,)))
    assert "token-twice" in found.to_acknowledge
    assert sentence(found, "token-twice").startswith(
        "There is a deployment of the very same token already (t-0)"
    )


def test_s6_an_unsigned_one_holds_no_deployment() -> None:
    waits = replace(signed(token_psbt(GOLD.deployment, salt=5)), signed=False, state=State.WAITING_PERSON)
    found = review(token_snapshot(GOLD.deployment), review_context(token=GOLD, neighbours=(waits,)))
    assert found.to_acknowledge == {"token-effect"}


@pytest.mark.parametrize(
    "changes",
    [{"name": "Gold of the Other House"}, {"total_supply": token_amount(1)}],
    ids=["name", "supply"],
)
def test_s6_a_deployment_of_another_bytecode_is_another_token(changes: dict[str, Any]) -> None:
    other = signed(token_psbt(gold(**changes).deployment, salt=5))
    found = review(token_snapshot(GOLD.deployment), review_context(token=GOLD, neighbours=(other,)))
    assert found.to_acknowledge == {"token-effect"}


@pytest.mark.parametrize("replaced", ["t-0", None], ids=["a bump", "another version"])
def test_s6_a_deployment_from_the_same_coins_is_one_of_its_family(replaced: str | None) -> None:
    """Only one of the two can confirm, whatever is said of them."""
    first = signed(token_psbt(GOLD.deployment, fee=500))
    context = review_context(token=GOLD, neighbours=(first,))
    found = review(token_snapshot(GOLD.deployment, replaces=replaced), context)
    assert found.allowed
    # What is not said to replace the first is held as a second spend of its coins.
    assert found.to_acknowledge == {"token-effect"} | ({"conflict"} if replaced is None else set())


def test_s11_a_bump_that_calls_something_else_is_refused() -> None:
    context = review_context(token=GOLD, neighbours=(signed(token_psbt(call(amount=9), fee=500)),))
    assert "replacement" in refused_by(token_snapshot(call(), replaces="t-0"), context)


def test_s24_another_bytecode_is_another_digest() -> None:
    snapshot = token_snapshot(call())
    first = review(snapshot, KNOWING).digest
    assert review(snapshot, review_context(token=gold(icon="https://a.example"))).digest != first
