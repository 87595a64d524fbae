"""A proposal in words: nothing that matters is left out, whatever its shape."""

from dataclasses import replace

import pytest

from custody.schemas.proposals import ProposalStatus, TroubleKind
from multisig import ChangeTo, TxOut, build_psbt, encode_address, op_return_script, sats
from multisig.tokens import Function, encode_payload
from signerd.cli.words import proposal_text, proposals_text
from signerd.core import events
from signerd.core.engine import MAY_BE_SIGNED, decide
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.values import Record, Trouble
from signerd.daemon.proposal_views import proposal_view
from tests.multisig.tokens.samples import OWNER, call
from tests.support.desk import NETWORK, VAULT, review_context, snapshot_of, spend
from tests.support.wallets import fund, pay


def of_data(payload: bytes):
    outputs = [TxOut(sats(0), op_return_script(payload)), ChangeTo(sats(90_000), 1, 0)]
    return snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0))


TRANSFER = encode_payload(call(Function.TRANSFER, amount=1_250, address=OWNER))
FINAL = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(90_000)], 0, sequence=0xFFFFFFFF)
TRUC = replace(FINAL, tx=replace(FINAL.tx, version=3))
SLOW = Trouble(TroubleKind.SLOW, "bump", "It pays 1 sat/vB.", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize(
    ("snapshot", "record", "above", "claimed"),
    [
        (of_data(b"hello"), {}, ["data   5 bytes: 68656c6c6f ('hello')\n"], []),
        (of_data(b"\x1b[2J"), {}, ["data   4 bytes: 1b5b324a\n"], []),
        (
            of_data(TRANSFER),
            {},
            [f"on the device: {TRANSFER.hex()}\n", "raw amount: 1250\n", encode_address(OWNER, NETWORK)],
            [],
        ),
        (snapshot_of(spend(locktime=700_000)), {}, [", replaceable, not before 700000 (locktime)"], []),
        (snapshot_of(FINAL), {}, [", not replaceable"], []),
        (snapshot_of(TRUC), {}, [", version 3 (TRUC, BIP-431), replaceable"], []),
        (
            snapshot_of(spend(), trouble=SLOW, txid="ab" * 32, confirmations=3),
            {"reason": "It was interrupted.", "alarm": "ALARM: altered."},
            [
                "It was interrupted.\n",
                "ALARM: altered.\n",
                "TROUBLE, by the platform's word, since 2026-01-02",
            ],
            ["It pays 1 sat/vB.", f"transaction {'ab' * 32}, 3 confirmations"],
        ),
        (snapshot_of(spend()), {"reason": "ALARM: altered.", "alarm": "ALARM: altered."}, [], []),
    ],
    ids=range(8),
)
def test_s10_s12_what_is_known_stands_there_and_what_the_platform_claims_stands_apart(
    snapshot, record, above, claimed
):
    found = Record(snapshot, State.WAITING_PERSON, "t", **record)
    text = proposal_text(proposal_view(found, review(snapshot, review_context())))
    (head, claims), money = (
        text.split("What the platform says (not believed)"),
        text.split("Where the money")[1],
    )
    assert [words for words in above if words not in head + f"{money}\n"] == []
    assert [words for words in claimed if words in head or words not in claims] == []
    assert text.count("ALARM: altered.") == ("alarm" in record)


@pytest.mark.parametrize(("status", "words"), [("CANCELLED", "cancelled"), ("PENDING", "ended")])
def test_what_the_platform_ended_is_called_as_there(status, words):
    found = Record(snapshot_of(spend(), status=ProposalStatus(status)), State.WITHDRAWN, "t")
    text = proposal_text(proposal_view(found, review(found.snapshot, review_context())))
    assert f"State: {words}\n" in text


def test_of_a_device_that_may_have_signed_it_is_not_said_that_it_did_not():
    asked = Record(snapshot_of(spend()), State.SIGNING, "t")
    found = decide(asked, events.Restarted(), review_context()).record
    view = proposal_view(found, review(found.snapshot, review_context()))
    words = f"perhaps signed; you may approve it again: {MAY_BE_SIGNED}"
    assert words in proposals_text([view])
