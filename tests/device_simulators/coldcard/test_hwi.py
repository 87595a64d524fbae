"""The virtual Coldcard driven by unmodified hwilib, as it drives hardware."""

import base64

import pytest
from hwilib.common import AddressType, Chain
from hwilib.descriptor import parse_descriptor
from hwilib.errors import ActionCanceledError, BadArgumentError, DeviceBusyError
from hwilib.psbt import PSBT

from device_simulators.conformance.second_program import open_coldcard
from device_simulators.panel import refuse_all
from multisig import (
    ChangeTo,
    DerivationPath,
    Network,
    Psbt,
    TxOut,
    accept_signatures,
    build_psbt,
    finalise,
    message_hash,
    op_return_script,
    recover_message_key,
    sats,
    verify_signatures,
)
from tests.support.coldcard import (
    SEED,
    VAULT,
    enrol,
    knows,
    on_thread,
    record,
    running,
    text_file,
    vault_with_device,
)
from tests.support.wallets import BOB, fund, make_spend, pay

pytestmark = pytest.mark.anyio
PATH = "m/48h/1h/0h/2h"


def to_hwi(psbt):
    parsed = PSBT()
    parsed.deserialize(psbt.to_base64())
    return parsed


def hwi_sign(client, psbt):
    return Psbt.parse(client.sign_tx(to_hwi(psbt)).serialize())


async def test_it_tells_its_fingerprint_and_xpubs(tmp_path):
    def ask(path):
        with open_coldcard(path) as client:
            return client.get_master_fingerprint(), client.get_pubkey_at_path(PATH).to_string()

    async with running(tmp_path) as (_, path):
        fingerprint, xpub = await on_thread(ask, path)
    assert fingerprint == bytes(SEED.fingerprint)
    assert xpub == str(SEED.xpub(DerivationPath.parse(PATH), Network.REGTEST))


async def test_a_mainnet_device_gives_mainnet_keys(tmp_path):
    def ask(path):
        with open_coldcard(path, Chain.MAIN) as client:
            return client.get_pubkey_at_path("m/48h/0h/0h/2h").to_string()

    async with running(tmp_path, network=Network.MAINNET) as (_, path):
        assert (await on_thread(ask, path)).startswith("xpub")


async def test_it_enrols_shows_and_signs_for_a_vault(tmp_path):
    psbt = make_spend(VAULT, n_inputs=3)

    def work(path):
        with open_coldcard(path) as client:
            assert not knows(client.device, VAULT)
            assert enrol(client.device, text_file(VAULT))
            assert knows(client.device, VAULT)
            return hwi_sign(client, psbt)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        signed = await on_thread(work, path)

    assert [prompt.kind for prompt in shown] == ["enrol-wallet", "sign-transaction"]
    report = verify_signatures(signed, VAULT)
    assert [set(item.valid.values()) for item in report.inputs] == [{SEED.fingerprint}] * 3
    accepted = accept_signatures(psbt, signed, VAULT, SEED.fingerprint)
    finalise(accept_signatures(accepted, BOB.sign(psbt), VAULT, BOB.fingerprint), VAULT)


async def test_the_screen_shows_payments_fee_and_data_and_tells_change_apart(tmp_path):
    outputs = [pay(50_000), ChangeTo(sats(48_500), 1, 7), TxOut(sats(0), op_return_script(b"invoice 7"))]
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)

    def work(path):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            hwi_sign(client, psbt)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
    lines = shown[-1].lines
    assert "Sending 0.00050000 XTN" in lines
    assert "Network fee 0.00001500 XTN" in lines
    payment = lines.index("0.00050000 XTN")
    assert lines[payment + 1] == " - to address -"
    assert lines[payment + 2].startswith("tb1q")
    assert f"{b'invoice 7'.hex()} (ascii: invoice 7)" in lines
    change = lines.index("Change back:")
    assert lines[change + 1 : change + 3] == ("0.00048500 XTN", " - to address -")
    assert lines[change + 3].startswith("tb1q")


@pytest.mark.parametrize("length", [1, 75, 76, 78, 80])
async def test_op_return_of_every_push_form_is_signed_and_shown_whole(tmp_path, length):
    data = bytes(range(0x80, 0x80 + length))
    outputs = [ChangeTo(sats(99_000), 1, 0), TxOut(sats(0), op_return_script(data))]
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)

    def work(path):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            return hwi_sign(client, psbt)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        signed = await on_thread(work, path)
    assert data.hex() in shown[-1].lines
    assert verify_signatures(signed, VAULT).progress == 1


async def test_it_signs_for_a_single_key_profile(tmp_path):
    from multisig import KeyOrigin, OriginKey, Profile, profile_account_path

    account = profile_account_path(Network.REGTEST)
    key = OriginKey(KeyOrigin(SEED.fingerprint, account), SEED.xpub(account, Network.REGTEST))
    profile = Profile(Network.REGTEST, key)
    psbt = make_spend(profile)

    def work(path):
        with open_coldcard(path) as client:
            return hwi_sign(client, psbt)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        signed = await on_thread(work, path)
    assert verify_signatures(signed, profile).progress == 1
    assert "Change back:" in shown[-1].lines


async def test_signing_again_asks_again_and_adds_nothing(tmp_path):
    psbt = make_spend(VAULT)

    def work(path):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            once = hwi_sign(client, psbt)
            return once, hwi_sign(client, once)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        once, twice = await on_thread(work, path)
    assert once == twice
    assert [prompt.kind for prompt in shown].count("sign-transaction") == 2


async def test_a_message_is_signed_with_the_key_of_the_path(tmp_path):
    path_of_key = "m/48h/1h/0h/2h/0/0"

    def work(path):
        with open_coldcard(path) as client:
            return base64.b64decode(client.sign_message("Register key 7, please", path_of_key))

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        signature = await on_thread(work, path)
    assert len(message_hash("Register key 7, please")) == 32
    key = recover_message_key("Register key 7, please", signature)
    assert key == SEED.public_key(DerivationPath.parse(path_of_key))
    assert "Register key 7, please" in shown[0].lines


async def test_a_refusal_is_action_cancelled(tmp_path):
    def work(path):
        with open_coldcard(path) as client:
            with pytest.raises(ActionCanceledError):
                client.sign_message("no thanks", "m/0")
            assert not enrol(client.device, text_file(VAULT))
            assert not knows(client.device, VAULT)

    async with running(tmp_path, script=refuse_all) as (_, path):
        await on_thread(work, path)


async def test_a_refused_transaction_is_action_cancelled_and_leaves_nothing(tmp_path):
    def work(path, device):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            device.panel.script = refuse_all
            with pytest.raises(ActionCanceledError):
                hwi_sign(client, make_spend(VAULT))

    async with running(tmp_path) as (device, path):
        await on_thread(work, path, device)


async def test_an_open_prompt_makes_the_device_busy(tmp_path):
    from device_simulators.panel import ask_person
    from tests.support.coldcard import start_signing

    def work(path, device):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            device.panel.script = ask_person
            start_signing(client.device, make_spend(VAULT).to_bytes())
            with pytest.raises(DeviceBusyError):
                client.sign_message("hello", "m/0")

    async with running(tmp_path) as (device, path):
        await on_thread(work, path, device)
        assert device.panel.pending is not None


async def test_a_vault_is_offered_for_import_from_the_transactions_xpubs(tmp_path):
    psbt = make_spend(VAULT)

    def work(path):
        with open_coldcard(path) as client:
            signed = hwi_sign(client, psbt)
            return signed, knows(client.device, VAULT)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        signed, known = await on_thread(work, path)
    assert [prompt.kind for prompt in shown] == ["import-wallet", "sign-transaction"]
    assert known
    assert verify_signatures(signed, VAULT).progress == 1


async def test_an_unknown_vault_without_xpubs_is_refused(tmp_path):
    from dataclasses import replace

    psbt = replace(make_spend(VAULT), xpubs=())

    def work(path):
        with open_coldcard(path) as client, pytest.raises(BadArgumentError, match="Unknown multisig wallet"):
            hwi_sign(client, psbt)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
    assert shown == []


async def test_a_second_vault_must_be_enrolled_once_one_is_on_record(tmp_path):
    other = vault_with_device(account=1)

    def work(path):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            with pytest.raises(BadArgumentError, match="XPUBs in PSBT do not match any existing wallet"):
                hwi_sign(client, make_spend(other))
            enrol(client.device, text_file(other, "Second"))
            return hwi_sign(client, make_spend(other))

    async with running(tmp_path) as (_, path):
        signed = await on_thread(work, path)
    assert verify_signatures(signed, other).progress == 1


async def test_addresses_are_shown(tmp_path):
    descriptor = parse_descriptor(VAULT.descriptor.split("#")[0].replace("/<0;1>/*", "/0/3"))

    def work(path):
        with open_coldcard(path) as client:
            enrol(client.device, text_file(VAULT))
            shown = client.display_multisig_address(AddressType.WIT, descriptor.subdescriptors[0])
            return shown, client.display_singlesig_address("m/84h/1h/0h/0/0", AddressType.WIT)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        multisig, single = await on_thread(work, path)
    from multisig import decode_address, p2wpkh

    assert decode_address(multisig, Network.TESTNET4) == VAULT.script_pubkey(0, 3)
    key = SEED.public_key(DerivationPath.parse("m/84h/1h/0h/0/0"))
    assert decode_address(single, Network.TESTNET4) == p2wpkh(key)
    assert [prompt.kind for prompt in shown[1:]] == ["show-address", "show-address"]
