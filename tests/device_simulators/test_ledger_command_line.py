"""HWI's command line finds and drives the virtual Ledger at the one address that it knows."""

import base64

import pytest

from multisig import (
    DerivationPath,
    Network,
    Psbt,
    multisig_account_path,
    recover_message_key,
    verify_signatures,
)
from tests.support.namespace import run_isolated
from tests.support.virtual import NETWORK, seed, vault

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
