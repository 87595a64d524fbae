"""What each maker's firmware does of its own accord: what it hides, what it refuses, and in which words."""

import pytest

from firmware_bridge import BridgeError, Unsupported
from multisig import (
    RECEIVE,
    ChangeTo,
    Vault,
    build_psbt,
    multisig_account_path,
    op_return_script,
    recover_message_key,
    sats,
)
from tests.conformance import makes, payments
from tests.conformance.makes import VAULT, Shown, enrol, sign_and_check
from tests.conformance.rigs import ACCOUNT, NETWORK, SEEDS, bridged, key_at

pytestmark = pytest.mark.anyio

# To a Ledger only chain 1 is change; the others know the vault's own receive addresses too.
HIDES_RECEIVE = ((makes.TREZOR, True), (makes.COLDCARD, True), (makes.LEDGER, False))


@pytest.mark.parametrize(("make", "hidden"), HIDES_RECEIVE, ids=lambda value: getattr(value, "name", None))
async def test_money_to_the_vaults_own_receive_address(make, hidden, folder):
    rig = make.rig(folder)
    coins = [payments.fund(VAULT, 100_000, index=index) for index in range(2)]
    psbt = build_psbt(VAULT, coins, [payments.pay(50_000), ChangeTo(sats(149_000), RECEIVE, 7)], 0)
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        shown = Shown(rig)
        await sign_and_check(bridge, device, rig, psbt)
    assert shown.pays(VAULT.address(RECEIVE, 7)) is not hidden


def vault_of_account(number: int) -> Vault:
    path = multisig_account_path(NETWORK, number)
    return Vault(NETWORK, 2, tuple(key_at(seed, path) for seed in SEEDS))


@pytest.mark.parametrize(("account", "signs"), [(0, True), (100, True), (101, False)])
async def test_s9_a_trezor_knows_accounts_up_to_100(account, signs, folder):
    rig, vault = makes.TREZOR.rig(folder), vault_of_account(account)
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        if signs:
            await bridge.sign(device.id, payments.make_spend(vault), vault)
            return
        with pytest.raises(BridgeError) as caught:
            await bridge.sign(device.id, payments.make_spend(vault), vault)
        assert "Forbidden key path" in caught.value.detail, "a debug build says where, too"
        assert shown.prompts == []


async def test_a_trezor_signs_no_message_at_the_accounts_own_path(folder):
    rig = makes.TREZOR.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        with pytest.raises(BridgeError) as caught:
            await bridge.sign_message(device.id, "I am here", ACCOUNT)
        assert "Forbidden key path" in caught.value.detail
        assert shown.prompts == []
        await makes.works_again(bridge, device, rig)


@pytest.mark.parametrize("make", [makes.TREZOR, makes.LEDGER], ids=makes.named)
@pytest.mark.parametrize("text", ["\u00fcber", "u\u0308ber", "\u212b"], ids=ascii)
async def test_a_message_is_signed_letter_by_letter_as_it_was_written(make, text, folder):
    """Two ways to write an ü are two texts; HWI makes one of them on its way to a Trezor."""
    rig = make.rig(folder)
    async with bridged(rig) as (bridge, [device]):
        signature = await bridge.sign_message(device.id, text, ACCOUNT / "0/0")
    assert recover_message_key(text, signature) == rig.seed.public_key(ACCOUNT / "0/0")


@pytest.mark.parametrize(
    ("data", "signs"), [(b"\x00", True), (b"\x05", False), (b"\x11", True), (b"\x05\x05", True)]
)
async def test_a_ledger_signs_no_single_byte_that_has_an_opcode_of_its_own(data, signs, folder):
    rig = makes.LEDGER.rig(folder)
    psbt = payments.with_output(
        payments.make_spend(VAULT), 0, script_pubkey=op_return_script(data), amount=sats(0)
    )
    async with bridged(rig) as (bridge, [device]):
        await enrol(bridge, device)
        if signs:
            await sign_and_check(bridge, device, rig, psbt)
            return
        with pytest.raises(Unsupported):
            await bridge.sign(device.id, psbt, VAULT)
