"""S12, S28: a token's call through a real daemon: what is said that the device shows, it shows; what it cuts
off is named first.
"""

from dataclasses import replace

import pytest

from firmware_bridge import Family
from multisig import RECEIVE, sats
from multisig.tokens import MAX_TOKEN_AMOUNT, Deploy, Function, TokenCall, encode_payload, token_amount
from signerd.core.tokens import PublishedToken
from signerd.errors import NeedsAcknowledgement
from tests.attacks.cases import proposals, snapshot
from tests.attacks.people import MALLORYS, VAULT
from tests.attacks.recipes.scene import Scene, story
from tests.attacks.recipes.tokens import ONE, carrying, deployment, token_of, told
from tests.conformance import makes
from tests.support.command import signerd

LONGEST = 78


def hex_digits(text: str) -> str:
    """Screens break long data, and a Ledger marks it."""
    return "".join(text.lower().removeprefix("op_return").replace("0x", "").split())


def payload_of(scene: Scene, function: Function | None) -> TokenCall | Deploy:
    if function is None:
        return token_of(scene).deployment
    return TokenCall(
        contract_id=deployment(scene).tx.txid,
        function=function,
        amount=token_amount(MAX_TOKEN_AMOUNT) if function.takes_amount else None,
        address=MALLORYS.script_pubkey(0, 0) if function.takes_address else None,
    )


@pytest.mark.parametrize(
    "function", [Function.TRANSFER, Function.PAUSE, None], ids=["longest", "shortest", "deploy"]
)
def test_the_device_shows_the_hex_that_is_said_to_be_on_its_screen(desk, function):
    scene = Scene(f"a screen for {'deploy' if function is None else function.wire_name}")
    payload = payload_of(scene, function)
    psbt = carrying(scene, payload)
    said = told(scene, payload)
    if function is None:
        said["call"] = {**said["call"], "contract_id": psbt.tx.txid}
    platform = {**story(psbt, ()), **said}
    shown = replace(snapshot(f"screen-{function or 0:d}", psbt.to_bytes(), platform))
    blob = said["published"]
    desk.platform.published[shown.contract_uid] = PublishedToken(
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
    assert token.on_screen
    assert token.on_screen in whole.replace("op_return", "")
    # 36 bytes at least are carried; a Trezor One shows 31.
    cuts = desk.rig.family is Family.TREZOR
    assert len(token.on_screen) // 2 == (31 if cuts else len(token.hex) // 2)
    if cuts:
        assert token.on_screen + ".." in whole
        assert token.hex[: len(token.on_screen) + 2] not in whole
    assert desk.screen is not None
    assert any(desk.screen.name in note for note in token.notes)
    # What returns to the vault's address is told of before, in the form in which devices write it.
    assert any("may show" in note and "tb1" in note for note in token.notes)
    assert [(back.chain, back.index) for back in view.money.change] == [(RECEIVE, 0)]
    assert view.money.paid_sats == 0
    assert sats(view.money.change_sats) > 0
    assert VAULT.address(RECEIVE, 0) == view.money.change[0].address


ON_A_TREZOR_ONE = proposals(lambda p: p.number == "S28" and p.around == ONE["around"])
HIDDEN = tuple(p for p in ON_A_TREZOR_ONE if not p.honest)


@pytest.mark.parametrize("desk", [makes.TREZOR], indirect=True, ids=makes.named)
@pytest.mark.parametrize("proposal", HIDDEN, ids=str)
def test_s28_what_a_trezor_one_cuts_off_is_named_before_it_is_asked(desk, proposal):
    assert desk.screen is not None
    assert desk.screen.name == "Trezor One (emulator) 1.14.1"
    assert [desk.screen.whole, desk.screen.first] == list(proposal.around["screen"][1:])
    shown, view = desk.shown, desk.offer(proposal.snapshot())
    try:
        text = signerd("show", proposal.psbt_id, state=desk.state).out
        others = set(proposal.held) - {"token-not-on-screen"}
        assert desk.say_yes(view, *others) == NeedsAcknowledgement.code
        assert shown.prompts == []
        assert desk.approve(view, *view.to_acknowledge) is None
    finally:
        desk.clear(proposal.psbt_id)
    assert set(view.to_acknowledge) == set(proposal.held)
    assert desk.submitted(proposal.psbt_id) == 1
    assert "shows the first 31 of the" in text
    assert "Not on its screen: " in text
    assert ".. and no more" in text
