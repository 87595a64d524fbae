"""The Ledger driver: HWI's unmodified client against a virtual device on Ledger's own protocol; and a vault
as a wallet policy, with the PSBT version that the app reads.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from device_simulators.panel import ask_person
from firmware_bridge.hwi_client.hwi import parse_psbt
from firmware_bridge.hwi_client.ledger import link
from firmware_bridge.hwi_client.ledger.app import Loading, to_version_2, wallet_of
from multisig import Psbt, multisig_account_path, profile_account_path
from tests.conformance import rigs
from tests.support import wallets
from tests.support.driver import policy_args
from tests.support.ledger_driver import ANOTHER, bench, fails_with
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()


ACCOUNT = str(multisig_account_path(rigs.NETWORK))
PROFILE_PATH = profile_account_path(rigs.NETWORK)


async def sign(driver, psbt, policy) -> Psbt:
    answer = await driver.call("sign", psbt=psbt.to_base64(), policy=policy, payments=1, resume=False)
    return Psbt.parse(answer)


@pytest.mark.parametrize("app", ["BOLOS", "Ethereum", "Bitcoin", "Bitcoin Test Legacy"])
async def test_a_probe_names_the_wrong_app(app):
    async with bench(app_name=app) as b:
        answer = await b.driver.call("probe")
    assert (answer.obstacle, answer.detail) == ("wrong-app", app)
    assert (answer.model, answer.fingerprint) == ("Ledger", None)


async def test_an_unusual_path_is_not_shown_to_a_person():
    """HWI asks again with the wish to show it, and waits for a button."""
    async with bench() as b:
        with fails_with("unsupported", "m/7h/8h"):
            await b.driver.call("xpubs", paths=["m/7h/8h"])
        assert b.record.prompts == []


@pytest.mark.parametrize("again", [False, True])
async def test_a_proof_that_does_not_hold_or_is_not_wanted_is_replaced(again):
    async with bench() as b:
        hmac = await b.driver.enrol(VAULT)
        b.record.events.clear()
        stale = hmac if again else ANOTHER
        answer = await b.driver.call("enrol", policy=policy_args(VAULT, hmac=stale), again=again)
        assert answer == hmac
        assert b.record.kinds == ["enrol"]
        assert b.driver.caller.steps == ["confirm-enrolment"] * 2


async def test_the_person_is_called_when_the_question_is_on_the_screen_and_not_before():
    """Of ten inputs "Loading transaction" takes two thirds of the time."""
    seen = []
    async with bench() as b:
        policy = policy_args(VAULT, hmac=await b.driver.enrol(VAULT))
        b.driver.caller.told.clear()
        b.record.events.clear()
        b.panel.script = ask_person
        told = b.driver.caller.hears("confirm-transaction", lambda: seen.append(b.record.kinds))
        signing = asyncio.create_task(sign(b.driver, wallets.make_spend(VAULT, n_inputs=3), policy))
        await asyncio.wait_for(told.wait(), PATIENCE)
        b.panel.press_yes()
        await signing
    assert seen == [["sign-transaction"]]
    assert b.driver.caller.steps == ["sending"] * 4 + ["confirm-transaction"] + ["signing"] * 4


@pytest.mark.parametrize(
    ("version", "readings"), [("2.4.0", 3), ("2.4.6", 3), ("2.4.7", 1), ("2.4.6-rc", 1), ("", 1)]
)
def test_only_a_version_that_was_read_is_known_not_to_ask_before_it_has_read_the_inputs_thrice(
    version, readings
):
    """A person who is asked by any other must not be taken for a device that fell silent."""
    root = bytes(range(32))
    loading = Loading(SimpleNamespace(tell=lambda *_note: None), 2, version)
    loading.started(b"\x01" + bytes(64) + b"\x02" + root + bytes(32))
    asks = []
    for at in (0, 1) * readings:
        asks.append(loading.may_ask())
        loading.requested(b"\x41" + root + bytes([2, at]))
    assert not any(asks)
    assert loading.may_ask()


async def test_another_program_in_the_middle_is_noticed_long_before_a_persons_deadline(monkeypatch):
    """The app drops our command for the other one's, and never answers ours."""
    monkeypatch.setattr(link, "_ANSWER_SECONDS", 0.3)
    async with bench(answer_seconds=0.002) as b:
        policy = policy_args(VAULT, hmac=await b.driver.enrol(VAULT))
        b.record.events.clear()
        begun = b.driver.caller.hears("sending")
        signing = asyncio.create_task(sign(b.driver, wallets.make_spend(VAULT, n_inputs=10), policy))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        host, _, port = b.endpoint.place.rpartition(":")
        _reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(PATIENCE):
            with fails_with("timed-out", "another program may have used it"):
                await signing
        writer.close()
        assert b.record.prompts == []
        assert "confirm-transaction" not in b.driver.caller.steps


OPERATIONS = {
    "fingerprint": {},
    "xpubs": {"paths": [ACCOUNT]},
    "sign": {"psbt": wallets.make_spend(VAULT).to_base64(), "policy": policy_args(VAULT, hmac=ANOTHER)},
    "enrol": {"policy": policy_args(VAULT), "again": False},
    "show_address": {"policy": policy_args(VAULT, hmac=ANOTHER), "chain": 0, "index": 0},
    "sign_message": {"text": "I am here", "path": f"{PROFILE_PATH}/0/0"},
    "identify": {},
}


@pytest.mark.parametrize("op", OPERATIONS)
async def test_s14_the_app_is_looked_at_before_everything_that_is_asked(op):
    async with bench() as b:
        await b.driver.call("fingerprint")
        b.device.app_name = "Bitcoin"
        with fails_with("wrong-app", "^Bitcoin$"):
            await b.driver.call(op, **OPERATIONS[op])
    assert b.record.prompts == []
    assert b.driver.caller.told == []


def test_a_vault_is_a_policy_with_the_keys_in_their_own_order():
    wallet = wallet_of(policy_args(VAULT))
    assert (wallet.name, wallet.descriptor_template) == ("Savings", "wsh(sortedmulti(2,@0/**,@1/**,@2/**))")
    for text, key in zip(wallet.keys_info, VAULT.cosigners, strict=True):
        assert text == f"[{key.fingerprint}/48'/1'/0'/2']{key.xpub}"


def test_another_order_is_another_wallet():
    policy = policy_args(VAULT)
    turned = replace(policy, keys=policy.keys[::-1])
    assert wallet_of(policy).id != wallet_of(turned).id


def prepared(psbt):
    theirs = parse_psbt(psbt.to_base64())
    to_version_2(theirs)
    return theirs


@pytest.mark.parametrize("locktime", [0, 800_000])
def test_version_2_says_what_version_0_said(locktime):
    psbt = wallets.make_spend(VAULT, n_inputs=3, locktime=locktime)
    theirs = prepared(psbt)
    assert theirs.version == 2
    assert (theirs.tx_version, theirs.fallback_locktime) == (psbt.tx.version, locktime)
    spent = [(item.prev_txid[::-1].hex(), item.prev_out, item.sequence) for item in theirs.inputs]
    paid = [(item.amount, item.script) for item in theirs.outputs]
    assert spent == [(str(i.outpoint.txid), i.outpoint.vout, i.sequence) for i in psbt.tx.inputs]
    assert paid == [(out.amount, out.script_pubkey) for out in psbt.tx.outputs]


def test_every_input_states_its_coin_as_the_previous_transaction_has_it():
    psbt = wallets.make_spend(VAULT)
    bare = wallets.with_input(psbt, 0, witness_utxo=None)
    coin = prepared(bare).inputs[0].witness_utxo
    expected = psbt.inputs[0].non_witness_utxo.outputs[1]
    assert (coin.nValue, coin.scriptPubKey) == (expected.amount, expected.script_pubkey)
