"""A token's call through a real daemon, and how much of its hex each make's virtual device shows (S12).

A Coldcard and a Ledger show all of it. A Trezor One shows 31 bytes, and then "..": the magic, the contract, and not who gets how much.
"""

from dataclasses import replace

import pytest

from firmware_bridge import Family
from multisig import RECEIVE, sats
from multisig.tokens import MAX_TOKEN_AMOUNT, Call, Deploy, Function, encode_payload, token_amount
from signerd.core.tokens import Published
from tests.attacks.cases import snapshot
from tests.attacks.people import MALLORYS, VAULT
from tests.attacks.recipes.scene import Scene, story
from tests.attacks.recipes.tokens import carrying, deployment, token_of, told

LONGEST = 78
# Bytes that a Trezor One 1.14.1 shows of longer binary data (legacy/firmware/layout2.c, split_message_hex).
TREZOR_SHOWS = 31


def hex_digits(text: str) -> str:
    """Screens break long data, and a Ledger marks it."""
    return "".join(text.lower().removeprefix("op_return").replace("0x", "").split())


def payload_of(scene: Scene, function: Function | None) -> Call | Deploy:
    if function is None:
        return token_of(scene).deployment
    return Call(
        contract_id=deployment(scene).tx.txid,
        function=function,
        amount=token_amount(MAX_TOKEN_AMOUNT) if function.takes_amount else None,
        address=MALLORYS.script_pubkey(0, 0) if function.takes_address else None,
    )


@pytest.mark.parametrize(
    "function", [Function.TRANSFER, Function.PAUSE, None], ids=["longest", "shortest", "deploy"]
)
def test_the_device_shows_the_hex_that_stands_beside_the_words_as_far_as_its_screen_goes(desk, function):
    scene = Scene(f"a screen for {'deploy' if function is None else function.wire_name}")
    payload = payload_of(scene, function)
    psbt = carrying(scene, payload)
    said = told(scene, payload)
    if function is None:
        said["call"] = {**said["call"], "contract_id": psbt.tx.txid}
    platform = {**story(psbt, ()), **said}
    shown = replace(snapshot(f"screen-{function or 0:d}", psbt.to_bytes(), platform))
    blob = said["published"]
    desk.platform.published[shown.contract_uid] = Published(
        blob["bytecode"].encode(), bytes.fromhex(blob["deployment"])
    )
    screens = desk.shown
    view = desk.offer(shown)
    try:
        ended = desk.approve(view, *view.to_acknowledge)
    finally:
        desk.clear(shown.psbt_id)
    assert ended is None
    assert desk.submitted(shown.psbt_id) == 1
    (data,) = view.money.data
    token = data.token
    assert token.proven
    assert token.hex == data.data == encode_payload(payload).hex()
    assert len(token.hex) // 2 <= LONGEST
    if function is Function.TRANSFER:
        assert len(token.hex) // 2 == LONGEST
    whole = hex_digits(" ".join(line for prompt in screens.prompts for line in prompt.lines))
    shown_hex = whole.replace("op_return", "")
    if desk.rig.family is Family.TREZOR and len(token.hex) // 2 > TREZOR_SHOWS + 1:
        assert token.hex[: 2 * TREZOR_SHOWS] + ".." in shown_hex
        assert token.hex[: 2 * TREZOR_SHOWS + 2] not in shown_hex
    else:
        assert token.hex in shown_hex
    # What returns to the vault's address is told of before, in the form in which devices write it.
    assert any("may show" in note and "tb1" in note for note in token.notes)
    assert [(back.chain, back.index) for back in view.money.change] == [(RECEIVE, 0)]
    assert view.money.paid_sats == 0
    assert sats(view.money.change_sats) > 0
    assert VAULT.address(RECEIVE, 0) == view.money.change[0].address
