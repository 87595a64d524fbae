"""Versions of the Bitcoin app with the old protocol: what they can do, and the errors for the rest."""

import base64
from contextlib import asynccontextmanager

import pytest
from coincurve import PublicKey

from firmware_bridge.operations import Keys
from multisig import (
    DerivationPath,
    Psbt,
    SighashCache,
    accept_signatures,
    hash160,
    p2pkh,
    profile_account_path,
    recover_message_key,
    signer_progress,
)
from multisig.ecdsa import message_hash
from tests.conformance import rigs
from tests.support import wallets
from tests.support.ledger_driver import (
    ANOTHER,
    Driven,
    driven,
    fails_with,
    policy_of,
    reply,
    scripted,
    version,
)
from tests.support.peers import own_profile

pytestmark = pytest.mark.anyio

VERSION, PUBLIC_KEY, FIRMWARE, FINGERPRINT = b"\xb0\x01", b"\xe0\x40", b"\xe0\xc4", b"\xe1\x05"
TRUSTED_INPUT, HASH_INPUTS, FINALIZE, FINALIZE_FULL = b"\xe0\x42", b"\xe0\x44", b"\xe0\x46", b"\xe0\x4a"
HASH_SIGN, MESSAGE = b"\xe0\x48", b"\xe0\x4e"
SEED = rigs.SEEDS[0]
VAULT = rigs.make_vault()
PATH = profile_account_path(rigs.NETWORK)
PROFILE = own_profile()
ADDRESS_PATH = PATH.child(0).child(3)
OLD = ("Bitcoin Test", "1.6.5"), ("Bitcoin Test", "2.0.6"), ("Bitcoin Test Legacy", "2.4.6")


def path_in(data: bytes) -> DerivationPath:
    return DerivationPath(tuple(int.from_bytes(data[1 + 4 * at : 5 + 4 * at]) for at in range(data[0])))


def public_key(command: bytes) -> bytes:
    """The uncompressed key, an address, the chain code."""
    path = path_in(command[5:])
    key = PublicKey(SEED.public_key(path)).format(compressed=False)
    address = b"tb1qanything"
    if path == ADDRESS_PATH:
        address = PROFILE.address(0, 3).encode()
    chain_code = SEED.xpub(path, rigs.NETWORK).chain_code
    return reply(0x9000, bytes([len(key)]) + key + bytes([len(address)]) + address + chain_code)


class Signing:
    """The old protocol's end of a signing; the signatures are over what the test has asked for."""

    def __init__(self, psbt: Psbt) -> None:
        self._psbt = psbt
        self._hashes = SighashCache(psbt.tx)
        self._signed = 0

    def sign(self, command: bytes) -> bytes:
        path = path_in(command[5:])
        coin = self._psbt.inputs[self._signed].non_witness_utxo.outputs[1]
        digest = self._hashes.segwit_v0(self._signed, p2pkh(hash160(SEED.public_key(path))), coin.amount, 1)
        self._signed += 1
        return reply(0x9000, b"\x31" + SEED.sign(path, digest)[1:] + b"\x01")


def sign_message(command: bytes) -> bytes:
    if command[2] == 0:
        return reply(0x9000, b"\x00\x00")
    header, r, s = _split(SEED.sign_recoverable(ADDRESS_PATH, message_hash("I am here")))
    body = b"\x02" + bytes([len(r)]) + r + b"\x02" + bytes([len(s)]) + s
    return reply(0x9000, bytes([0x30 | (header - 31 & 1), len(body)]) + body)


def _split(signature: bytes) -> tuple[int, bytes, bytes]:
    numbers = (int.from_bytes(signature[1:33]), int.from_bytes(signature[33:]))
    r, s = (number.to_bytes(number.bit_length() // 8 + 1) for number in numbers)
    return signature[0], r, s


@asynccontextmanager
async def legacy(psbt: Psbt | None = None, app=OLD[0], **others):
    answers = {
        VERSION: [version(*app)],
        FIRMWARE: [reply(0x9000, bytes([1, 0, 1, 6, 5]))],
        PUBLIC_KEY: public_key,
        TRUSTED_INPUT: [reply(0x9000, bytes(56))],
        HASH_INPUTS: [reply(0x9000)],
        FINALIZE_FULL: [reply(0x9000, b"\x00\x00")],
        MESSAGE: sign_message,
        HASH_SIGN: Signing(psbt).sign if psbt else [reply(0x6F00)],
    }
    async with (
        scripted(answers | others.get("answers", {})) as (script, endpoint),
        driven(endpoint) as driver,
    ):
        yield script, driver


@pytest.mark.parametrize("app", OLD, ids=str)
async def test_keys_and_the_fingerprint(app):
    async with legacy(app=app) as (_script, driver):
        answer = await driver.call("xpubs", paths=[str(PATH)])
    assert answer == Keys(str(SEED.fingerprint), (str(SEED.xpub(PATH, rigs.NETWORK)),))


@pytest.mark.parametrize("app", OLD, ids=str)
@pytest.mark.parametrize("op", ["sign", "enrol", "show_address"])
async def test_a_vault_needs_a_newer_app_and_no_prompt_is_shown(app, op):
    args = {
        "policy": policy_of(VAULT, hmac=ANOTHER),
        "psbt": wallets.make_spend(VAULT).to_base64(),
        "again": False,
        "chain": 0,
        "index": 0,
    }
    async with legacy(app=app) as (script, driver):
        with fails_with("unsupported", r"update it to 2\.1 or later"):
            await driver.call(op, **args)
        assert driver.caller.notes == []
        assert {command[:2] for command in script.commands} <= {VERSION, FIRMWARE, PUBLIC_KEY}


async def sign(driver: Driven, psbt: Psbt) -> Psbt:
    answer = await driver.call("sign", psbt=psbt.to_base64(), policy=policy_of(PROFILE))
    return Psbt.parse(answer)


async def test_a_single_signature_is_given():
    psbt = wallets.make_spend(PROFILE, n_inputs=2)
    async with legacy(psbt) as (_script, driver):
        answer = await sign(driver, psbt)
    signed = accept_signatures(psbt, answer, PROFILE, SEED.fingerprint)
    assert signer_progress(signed, PROFILE, SEED.fingerprint).is_complete
    assert driver.caller.steps == ["confirm-transaction"]


@pytest.mark.parametrize("status", [0x6982, 0x6985])
@pytest.mark.parametrize("at", [FINALIZE_FULL, HASH_SIGN], ids=["outputs", "total"])
async def test_a_rejection_is_reported_though_hwi_sends_another_command(status, at):
    answers = {at: [reply(status)], FINALIZE: [reply(0x6D00)]}
    async with legacy(answers=answers) as (script, driver):
        with fails_with("refused-by-person"):
            await sign(driver, wallets.make_spend(PROFILE))
    # HWI ignores the first rejection, and asks in a form that no device supports any more.
    assert script.count(FINALIZE) == (1 if at == FINALIZE_FULL else 0)


async def test_a_message_is_signed():
    async with legacy() as (_script, driver):
        answer = await driver.call("sign_message", text="I am here", path=str(ADDRESS_PATH))
    assert recover_message_key("I am here", base64.b64decode(answer)) == SEED.public_key(ADDRESS_PATH)


@pytest.mark.parametrize("status", [0x6982, 0x6985])
async def test_a_refused_message(status):
    async with legacy(answers={MESSAGE: [reply(status)]}) as (_script, driver):
        with fails_with("refused-by-person"):
            await driver.call("sign_message", text="I am here", path=str(ADDRESS_PATH))


async def test_an_old_app_that_is_locked_before_any_prompt():
    async with legacy(answers={PUBLIC_KEY: [reply(0x6982)]}) as (_script, driver):
        with fails_with("locked"):
            await driver.call("sign_message", text="I am here", path=str(ADDRESS_PATH))


async def test_an_address_of_a_profile_is_shown():
    async with legacy() as (script, driver):
        answer = await driver.call("show_address", policy=policy_of(PROFILE), chain=0, index=3)
    assert answer == PROFILE.address(0, 3)
    # Shown, in the native segwit form.
    assert script.commands[-1][:4] == PUBLIC_KEY + b"\x01\x02"


@pytest.mark.parametrize("script", [None, [reply(0x6985)]], ids=["yes", "no"])
async def test_either_button_identifies(script):
    def shown(command: bytes) -> bytes:
        return script[0] if script and command[2] else public_key(command)

    async with legacy(answers={PUBLIC_KEY: shown}) as (_script, driver):
        assert await driver.call("identify") is None
    assert driver.caller.steps == ["identify"]


async def test_an_app_that_was_updated_meanwhile_is_spoken_to_in_its_own_protocol():
    answers = {
        VERSION: [*[version(*OLD[0])] * 2, version("Bitcoin Test", "2.4.6")],
        FINGERPRINT: [reply(0x9000, bytes.fromhex("d34db33f"))],
    }
    async with legacy(answers=answers) as (_script, driver):
        assert await driver.call("fingerprint") == str(SEED.fingerprint)
        assert await driver.call("fingerprint") == "d34db33f"
