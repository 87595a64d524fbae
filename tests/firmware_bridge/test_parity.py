"""The same calls through HWI alone and through the bridge: the same keys, addresses and signatures, byte for
byte.

Where HWI is known to go wrong, what it does stands beside what the bridge does, so that a better HWI is
noticed.
"""

import base64
from pathlib import Path

import pytest
from hwilib.devices.trezorlib.exceptions import TrezorFailure

from firmware_bridge import Family
from multisig import (
    CHANGE,
    RECEIVE,
    BadSignature,
    ChangeTo,
    PsbtMismatch,
    accept_signatures,
    build_psbt,
    multisig_account_path,
    profile_account_path,
    sats,
    verify_signatures,
)
from tests.conformance import makes, rigs
from tests.conformance.everyday import with_op_return
from tests.conformance.makes import VAULT, Shown, enrolled, sign_and_check
from tests.conformance.rigs import ACCOUNT, NETWORK, bridged
from tests.support import bare_hwi, wallets

pytestmark = pytest.mark.anyio

PATHS = [ACCOUNT, multisig_account_path(NETWORK, 3), profile_account_path(NETWORK), ACCOUNT / "0/5"]
SPENDS = {
    "one input": wallets.make_spend(VAULT, n_inputs=1),
    "five inputs": wallets.make_spend(VAULT, n_inputs=5),
    "a height lock": wallets.make_spend(VAULT, locktime=840_000),
    "data of 1 byte": with_op_return(bytes(1)),
    "data of 75 bytes": with_op_return(bytes(75)),
}


@pytest.fixture
def folder():
    with rigs.short_folder() as name:
        yield Path(name)


@pytest.fixture(params=makes.VIRTUAL, ids=makes.named)
def rig(request, folder):
    return request.param.rig(folder)


async def test_the_same_keys(rig):
    async with bridged(rig) as (bridge, [device]):
        ours = [str(key.xpub) for key in await bridge.xpubs(device.id, PATHS)]
        fingerprint = await bridge.fingerprint(device.id)
        assert await bare_hwi.xpubs(rig, PATHS) == ours
        assert await bare_hwi.fingerprint(rig) == bytes(fingerprint)


@pytest.mark.parametrize(("chain", "index"), [(RECEIVE, 0), (CHANGE, 11)])
async def test_the_same_address_of_a_vault(rig, chain, index):
    async with enrolled(rig) as (bridge, device):
        ours = await bridge.show_address(device.id, VAULT, chain, index)
        assert await bare_hwi.vault_address(rig, VAULT, chain, index) == ours


async def test_the_same_address_of_a_profile(rig):
    profile = rig.profile
    path = profile_account_path(NETWORK) / "0/4"
    async with bridged(rig) as (bridge, [device]):
        ours = await bridge.show_address(device.id, profile, RECEIVE, 4)
        assert await bare_hwi.profile_address(rig, path) == ours


@pytest.mark.parametrize("psbt", SPENDS.values(), ids=SPENDS)
async def test_the_same_signatures_of_a_vault(rig, psbt):
    async with enrolled(rig) as (bridge, device):
        ours = await sign_and_check(bridge, device, rig, psbt)
        theirs = await bare_hwi.sign(rig, psbt)
    assert accept_signatures(psbt, theirs, VAULT, rig.seed.fingerprint) == ours


async def test_the_same_signatures_of_a_profile(rig):
    profile = rig.profile
    psbt = wallets.make_spend(profile)
    async with bridged(rig) as (bridge, [device]):
        ours = await bridge.sign(device.id, psbt, profile)
        theirs = await bare_hwi.sign(rig, psbt)
    assert accept_signatures(psbt, theirs, profile, rig.seed.fingerprint) == ours


async def test_the_same_signature_of_a_message(rig):
    path = profile_account_path(NETWORK) / "0/0"
    async with bridged(rig) as (bridge, [device]):
        ours = await bridge.sign_message(device.id, "I am here", path)
        assert base64.b64decode(await bare_hwi.message(rig, "I am here", path)) == ours


# Where HWI goes wrong.


@pytest.mark.parametrize("size", [76, 78, 80])
async def test_op_return_over_75_bytes_hwi_signs_another_transaction_on_a_trezor(rig, size):
    psbt = with_op_return(bytes(size))
    async with enrolled(rig) as (bridge, device):
        ours = await sign_and_check(bridge, device, rig, psbt)
        if rig.family == Family.TREZOR:
            # The length byte counts as data: of 80 bytes it makes 81, which the device refuses.
            with pytest.raises((BadSignature, TrezorFailure)):
                accept_signatures(psbt, await bare_hwi.sign(rig, psbt), VAULT, rig.seed.fingerprint)
        else:
            theirs = await bare_hwi.sign(rig, psbt)
            assert accept_signatures(psbt, theirs, VAULT, rig.seed.fingerprint) == ours


async def test_s1_hwi_shows_a_vaults_change_as_a_payment_on_a_trezor(folder):
    """A person who is used to that does not notice a second payment."""
    rig = makes.TREZOR.rig(folder)
    change = VAULT.address(CHANGE, 7)
    async with bridged(rig) as (bridge, [device]):
        shown = Shown(rig)
        await bare_hwi.sign(rig, wallets.make_spend(VAULT))
        theirs, ours = shown, Shown(rig)
        assert theirs.kinds.count("sign-output") == 2
        assert change in theirs.text
        await sign_and_check(bridge, device, rig)
    assert ours.kinds.count("sign-output") == 1
    assert change not in ours.text


async def test_s5_hwi_signs_another_transaction_where_an_input_lacks_its_coin(folder):
    """On a Trezor the input is left out, and what is signed is a transaction without it."""
    rig = makes.TREZOR.rig(folder)
    coins = [wallets.fund(VAULT, 100_000, index=index) for index in range(2)]
    # What is left without the second coin is enough, so that nothing else is wrong with it.
    sound = build_psbt(VAULT, coins, [wallets.pay(50_000), ChangeTo(sats(40_000), CHANGE, 7)], 0)
    psbt = wallets.with_input(sound, 1, non_witness_utxo=None, witness_utxo=None)
    async with bridged(rig) as (bridge, [device]):
        theirs = await bare_hwi.sign(rig, psbt)
        assert len(theirs.inputs[0].partial_signatures) == 1
        with pytest.raises(BadSignature):
            verify_signatures(sound.with_signatures({0: theirs.inputs[0].partial_signatures}), VAULT)
        shown = Shown(rig)
        with pytest.raises(PsbtMismatch):
            await bridge.sign(device.id, psbt, VAULT)
    assert shown.prompts == []
