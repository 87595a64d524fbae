"""A proposal in words: nothing that matters is left out, whatever its shape."""

import pytest

from custody.schemas.proposals import TroubleKind
from multisig import ChangeTo, TxOut, build_psbt, encode_address, op_return_script, sats
from multisig.tokens import Function, encode_payload, token_script
from signerd.cli.words import proposal_text, proposals_text
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.text import amount
from signerd.core.values import Neighbour, Record, Trouble
from signerd.daemon.proposal_views import proposal_view
from tests.multisig.tokens.samples import CONTRACT, OWNER, call
from tests.support.desk import NETWORK, VAULT, review_context, snapshot_of, spend
from tests.support.wallets import fund, pay


def text_of(snapshot, **record) -> str:
    found = review(snapshot, review_context())
    return proposal_text(proposal_view(Record(snapshot, State.WAITING_PERSON, "t", **record), found, NETWORK))


def _held():
    """The second payment from the same coins, and its review."""
    first = spend(fee=1_000)
    coins = frozenset(item.outpoint for item in first.inputs)
    payments = frozenset((o.script_pubkey, int(o.amount)) for o in first.outputs)
    signed = Neighbour(
        "p-0", State.SUBMITTED, signed=True, outpoints=coins, payments=payments, psbt=first.to_bytes()
    )
    context = review_context(neighbours=(signed,))
    snapshot = snapshot_of(spend(fee=2_000), psbt_id="p-2")
    found = review(snapshot, context)
    assert found.to_acknowledge
    return snapshot, found


def test_it_is_held_only_until_the_decision():
    snapshot, found = _held()

    def told(state: State) -> bool:
        view = proposal_view(Record(snapshot, state, "t"), found, NETWORK)
        return "held until you name these warnings: conflict" in proposal_text(view)

    before = {State.RECEIVED, State.WAITING_PERSON, State.INTERRUPTED}
    assert {state for state in State if told(state)} == before


def test_what_holds_it_stands_first_whom_it_pays_last_and_what_passed_is_a_line():
    snapshot, found = _held()
    view = proposal_view(Record(snapshot, State.WAITING_PERSON, "t"), found, NETWORK)
    brief, long = proposal_text(view), proposal_text(view, verbose=True)
    (payment,) = view.money.payments
    for text in (brief, long):
        blocks = text.split("\n\n")
        assert blocks[1].startswith("It is held until you name these warnings")
        assert blocks[2].startswith("Checks\n  WARNING")
        assert blocks[-1].splitlines()[-2].startswith(f"  pays   {amount(payment.amount_sats)} to ")
    passed = [check for check in view.checks if check.outcome == "allow"]
    assert f"  ok       {len(passed)} checks passed: -v shows each" in brief
    assert [check.name for check in passed if f"[{check.name}]" in brief] == []
    assert [check.name for check in view.checks if f"[{check.name}]" not in long] == []


def test_trouble_is_told_as_the_platforms_word_with_what_helps():
    trouble = Trouble(TroubleKind.SLOW, "bump", "It pays 1 sat/vB.", "2026-01-02T03:04:05Z")
    snapshot = snapshot_of(spend(), trouble=trouble)
    found = review(snapshot, review_context())
    view = proposal_view(Record(snapshot, State.BROADCAST, "t"), found, NETWORK)
    told = (
        "TROUBLE, by the platform's word, since 2026-01-02 03:04:05 UTC: It has waited for hours, and its "
        "fee is low. A new version with a higher fee helps: you are asked as soon as it is proposed."
    )
    head, claims = proposal_text(view).split("What the platform says (not believed)")
    assert f"  {told}" in head
    assert '"It pays 1 sat/vB."' in claims
    assert told in proposals_text([view])


def test_what_is_kept_says_once_that_the_platform_does_not_accept_it():
    reason = "Signed and kept: the platform does not accept it for now: The vault is frozen."
    snapshot = snapshot_of(spend())
    record = Record(snapshot, State.KEPT, "t", reason=reason)
    told = proposals_text([proposal_view(record, review(snapshot, review_context()), NETWORK)])
    assert f"  s{reason[1:]}\n" in told
    assert told.lower().count("signed and kept") == 1


@pytest.mark.parametrize(("data", "shown"), [(b"hello", "68656c6c6f ('hello')"), (b"\x1b[2J", "1b5b324a\n")])
def test_s10_data_is_shown(data, shown):
    outputs = [TxOut(sats(0), op_return_script(data)), ChangeTo(sats(90_000), 1, 0)]
    text = text_of(snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)))
    assert f"data   {len(data)} bytes: {shown}" in f"{text}\n"
    assert "in 1 coin\n" in text


def test_s12_a_tokens_data_is_read_out_under_its_hex():
    payload = call(Function.TRANSFER, amount=1_250, address=OWNER)
    outputs = [TxOut(sats(0), token_script(payload)), ChangeTo(sats(90_000), 1, 0)]
    text = text_of(snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)))
    address = encode_address(OWNER, NETWORK)
    assert (
        f"A token's data: Send 1250 raw units of tokens that this machine does not know to {address}." in text
    )
    for row in (
        "function: transfer",
        f"contract: {CONTRACT}",
        "raw amount: 1250",
        f"address: {address}",
        f"on the device: {encode_payload(payload).hex()}",
    ):
        assert f"           {row}\n" in text


def test_terms_are_shown():
    assert "replaceable" in text_of(snapshot_of(spend()))
    assert "not before 700000 (locktime)" in text_of(snapshot_of(spend(locktime=700_000)))
    final = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(90_000)], 0, sequence=0xFFFFFFFF)
    assert "not replaceable" in text_of(snapshot_of(final))


def test_an_alarm_and_a_reason_are_both_on_top():
    lines = text_of(snapshot_of(spend()), reason="It was interrupted.", alarm="ALARM: altered.").splitlines()
    assert lines[4:6] == ["  It was interrupted.", "  ALARM: altered."]
    once = text_of(snapshot_of(spend()), reason="ALARM: altered.", alarm="ALARM: altered.")
    assert once.count("ALARM: altered.") == 1


def test_what_the_network_says_of_it_is_marked_as_the_platforms_word():
    text = text_of(snapshot_of(spend(), txid="ab" * 32, confirmations=3))
    claims = text[text.index("What the platform says (not believed)") :]
    assert f"transaction {'ab' * 32}, 3 confirmations" in claims
