"""HWI's command line finds and drives each virtual device at the one address that it knows."""

import base64

import pytest

from multisig import (
    DerivationPath,
    Network,
    Psbt,
    encode_address,
    multisig_account_path,
    p2wpkh,
    recover_message_key,
    verify_signatures,
)
from tests.support.coldcard import SEED, VAULT
from tests.support.namespace import run_isolated
from tests.support.virtual import NETWORK, seed, vault


@pytest.mark.namespace
def test_hwi_enumerates_reads_keys_and_signs_pressing_the_buttons_itself():
    seen = run_isolated("trezor_scenario", "--allow-keypress", "--label", "Mine")

    assert seen["enumerate"] == {
        "type": "trezor",
        "path": "udp:127.0.0.1:21324",
        "label": "Mine",
        "model": "trezor_1_simulator",
        "needs_pin_sent": False,
        "needs_passphrase_sent": False,
        "fingerprint": str(seed().fingerprint),
    }
    assert (
        seen["getxpub"]
        == seen["found"]
        == {"xpub": str(seed().xpub(multisig_account_path(NETWORK), NETWORK))}
    )

    signature = base64.b64decode(seen["signmessage"]["signature"])
    key = seed().public_key(DerivationPath.parse("m/84h/1h/0h/0/0"))
    assert recover_message_key("hello there", signature) == key

    assert seen["signtx"]["signed"] is True
    assert verify_signatures(Psbt.parse(seen["signtx"]["psbt"]), vault()).progress == 1
    shown = encode_address(
        p2wpkh(seed().public_key(DerivationPath.parse("m/84h/1h/0h/0/5"))), Network.TESTNET4
    )
    assert seen["address"] == {"address": shown}
    message = ["unknown-path", "sign-message-address", "sign-message"]
    assert seen["shown"] == ["sign-output", "sign-output", "sign-total", "address", *message]


@pytest.mark.namespace
def test_a_refusal_is_hwi_s_code_14_and_nothing_is_signed():
    seen = run_isolated("trezor_scenario", "--auto", "refuse")
    for command in ("signtx", "signmessage"):
        assert seen[command]["code"] == -14
    assert seen["shown"] == ["sign-output", "unknown-path"]


@pytest.mark.namespace
def test_a_locked_device_is_listed_without_a_fingerprint():
    seen = run_isolated("trezor_scenario", "--pin", "1234")
    entry = seen["enumerate"]
    assert entry["needs_pin_sent"] is True
    assert entry["code"] == seen["getxpub"]["code"] == seen["signtx"]["code"] == -12
    assert "fingerprint" not in entry


_VAULT_PATH = DerivationPath.parse("m/48h/1h/0h/2h")


@pytest.mark.namespace
def test_hwi_enumerates_reads_keys_and_signs():
    seen = run_isolated("coldcard_scenario")

    (entry,) = [device for device in seen["enumerate"] if device["type"] == "coldcard"]
    assert entry["fingerprint"] == SEED.fingerprint.hex
    assert entry["model"] == "coldcard_simulator"
    assert "error" not in entry

    xpub = str(SEED.xpub(_VAULT_PATH, NETWORK))
    assert seen["getxpub"] == seen["found"] == {"xpub": xpub}

    signature = base64.b64decode(seen["signmessage"]["signature"])
    assert recover_message_key("hello there", signature) == SEED.public_key(DerivationPath.parse("m/0"))

    single = p2wpkh(SEED.public_key(DerivationPath.parse("m/84h/1h/0h/0/5")))
    assert seen["address"] == {"address": encode_address(single, Network.TESTNET4)}
    shown = encode_address(VAULT.script_pubkey(0, 0), Network.TESTNET4)
    assert seen["vault_address"] == {"address": shown}

    assert seen["signtx"]["signed"] is True
    assert verify_signatures(Psbt.parse(seen["signtx"]["psbt"]), VAULT).progress == 1


ENROLMENT = ["enrol"]


@pytest.mark.namespace
def test_hwi_enumerates_reads_keys_signs_and_shows_an_address():
    seen = run_isolated("ledger_scenario", "--auto", "approve")

    assert seen["enumerate"] == {
        "type": "ledger",
        "model": "ledger_nano_s_simulator",
        "label": None,
        "path": "tcp:127.0.0.1:9999",
        "fingerprint": str(seed().fingerprint),
        "needs_pin_sent": False,
        "needs_passphrase_sent": False,
    }
    assert (
        seen["getxpub"]
        == seen["found"]
        == {"xpub": str(seed().xpub(multisig_account_path(NETWORK), NETWORK))}
    )

    assert seen["signtx"]["signed"] is True
    assert verify_signatures(Psbt.parse(seen["signtx"]["psbt"]), vault()).progress == 1

    signature = base64.b64decode(seen["signmessage"]["signature"])
    key = seed().public_key(DerivationPath.parse("m/84h/1h/0h/0/0"))
    assert recover_message_key("hello there", signature) == key

    assert seen["displayaddress"] == {"address": vault(network=Network.TESTNET4).address(0, 7)}
    assert seen["shown"] == [
        *ENROLMENT, "sign-transaction", "sign-message", *ENROLMENT, "address"
    ]  # fmt: skip


@pytest.mark.namespace
def test_a_refusal_is_an_unknown_error_to_hwi_and_nothing_is_signed():
    seen = run_isolated("ledger_scenario", "--auto", "refuse")
    for command in ("signtx", "signmessage", "displayaddress"):
        assert seen[command]["code"] == -13
    assert seen["shown"] == ["enrol", "sign-message", "enrol"]


@pytest.mark.namespace
def test_a_device_in_another_app_is_listed_with_an_error():
    entry = run_isolated("ledger_scenario", "--app-name", "Ethereum")["enumerate"]
    assert "fingerprint" not in entry
    assert "not in either the Bitcoin" in entry["error"]
