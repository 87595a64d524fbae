"""Token proposals: proven names, words compared with bytes, and nothing beside the call (S12, S13); what the
device cuts off is named before the approval (S28).
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from custody.schemas.proposals import TxType
from multisig import RECEIVE, ChangeTo, build_psbt, sats
from multisig.tokens import Function, Payload, encode_payload, payload_parts, token_amount
from signerd.core.review import ProposalReview, review
from signerd.core.states import State
from signerd.core.tokens import ModelScreen, TokenClaim
from signerd.core.values import Neighbour
from tests.support.desk import (
    VAULT,
    neighbour,
    open_journal,
    prepared_journal,
    refused_by,
    review_context,
    snapshot_of,
)
from tests.support.tokens import GOLD, call, claim_of, gold, published, token_psbt, token_snapshot
from tests.support.wallets import ALICE, fund, make_vault

KNOWING = review_context(token=GOLD)


def sentence(found: ProposalReview, name: str) -> str:
    return next(verdict.sentence for verdict in found.verdicts if verdict.name == name)


def test_its_amount_is_told_in_whole_tokens_of_the_proven_token() -> None:
    found = review(token_snapshot(call(amount=1_250)), KNOWING)
    assert "Send 12.50 GOLD tokens to bcrt1" in sentence(found, "token-call")
    assert "'Gold of the House'" in sentence(found, "token-known")


@pytest.mark.parametrize(
    "name", ["decimals", "ticker", "max_supply", "bytecode_hash", "contract_id", "function"]
)
def test_s12_other_words_than_a_deployment_s_bytes_are_refused(name: str) -> None:
    honest = dict(claim_of(GOLD.deployment, token_psbt(GOLD.deployment).tx.txid).details)
    told = TokenClaim(tuple({**honest, name: "7"}.items()))
    assert refused_by(token_snapshot(GOLD.deployment, call=told), KNOWING) == {"token-call"}


def test_the_cancel_of_a_call_pays_no_one() -> None:
    back = build_psbt(VAULT, [fund(VAULT, 100_000)], [ChangeTo(sats(97_000), RECEIVE, 0)], 0)
    context = review_context(token=GOLD, neighbours=(signed(token_psbt(call())),))
    cancel = snapshot_of(back, kind=TxType.CALL, replaces="t-0")
    found = review(cancel, context)
    assert found.allowed
    assert not found.to_acknowledge


def test_s12_what_carries_no_data_and_takes_nothing_back_that_is_proven_the_vaults_is_no_call() -> None:
    stranger = make_vault(account=1)
    for vault, replaces in ((VAULT, None), (stranger, "t-0")):
        psbt = build_psbt(vault, [fund(vault, 100_000)], [ChangeTo(sats(97_000), RECEIVE, 0)], 0)
        assert refused_by(snapshot_of(psbt, kind=TxType.CALL, replaces=replaces), KNOWING) == {"kind-known"}


signed = partial(neighbour, psbt_id="t-0")


@pytest.mark.parametrize("function", Function)
def test_s6_the_same_amount_once_more_from_other_coins_is_held(function: Function) -> None:
    context = review_context(token=GOLD, neighbours=(signed(token_psbt(call(function), salt=5)),))
    held = review(token_snapshot(call(function)), context).to_acknowledge
    assert ("token-twice" in held) is function.takes_amount


FIRST = signed(token_psbt(GOLD.deployment, salt=5))
OF_ONE_COIN = signed(token_psbt(GOLD.deployment, fee=500))
BESIDE = {
    # What only others signed may confirm all the same.
    "signed by others": (replace(FIRST, signed=False), None, {"token-twice"}),
    "unsigned": (replace(FIRST, signed=False, state=State.WAITING_PERSON), None, set()),
    "of another name": (
        signed(token_psbt(gold(name="Gold of the Other House").deployment, salt=5)),
        None,
        set(),
    ),
    "of another supply": (
        signed(token_psbt(gold(total_supply=token_amount(1)).deployment, salt=5)),
        None,
        set(),
    ),
    # Only one of the two can confirm, whatever is said of them.
    "a bump": (OF_ONE_COIN, "t-0", set()),
    "another version": (OF_ONE_COIN, None, {"conflict"}),
}


@pytest.mark.parametrize(("other", "replaces", "held"), BESIDE.values(), ids=BESIDE)
def test_s6_a_deployment_beside_another(other: Neighbour, replaces: str | None, held: set[str]) -> None:
    context = review_context(token=GOLD, neighbours=(other,))
    found = review(token_snapshot(GOLD.deployment, replaces=replaces), context)
    assert found.allowed
    assert found.to_acknowledge == {"token-effect"} | held


def test_s24_another_bytecode_is_another_digest() -> None:
    snapshot = token_snapshot(call())
    first = review(snapshot, KNOWING).digest
    assert review(snapshot, review_context(token=gold(icon="https://a.example"))).digest != first


UNKNOWN = ModelScreen("Jade 1.0.31", None)
TRANSFER, DEPLOYMENT = call(), GOLD.deployment


@pytest.mark.parametrize("payload", [*map(call, Function), DEPLOYMENT], ids=lambda p: type(p).__name__)
def test_the_parts_of_a_payload_are_all_of_it(payload: Payload) -> None:
    assert b"".join(data for _name, data in payload_parts(payload)) == encode_payload(payload)


# --- the device that is asked -------------------------------------------------------------------------------


def test_what_was_seen_outlives_a_restart_and_is_written_once(tmp_path: Path) -> None:
    with prepared_journal(tmp_path) as journal:
        journal.learn_token(TRANSFER, published(GOLD))
        journal.see_screen(ALICE.fingerprint, UNKNOWN)
        entries = journal.head()
        assert journal.see_screen(ALICE.fingerprint, UNKNOWN) == ()
        assert journal.head() == entries
    with open_journal(tmp_path) as journal:
        assert journal.review_context(token_snapshot(TRANSFER)).screen == UNKNOWN
