"""HWI's command line and the options of a virtual device's own program. That it finds and drives each of them
at the one address that it knows: signerd/hwi/test_parity.py.
"""

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
def test_a_locked_device_is_listed_without_a_fingerprint():
    seen = run_isolated("trezor_scenario", "--pin", "1234")
    entry = seen["enumerate"]
    assert entry["needs_pin_sent"] is True
    assert entry["code"] == seen["getxpub"]["code"] == seen["signtx"]["code"] == -12
    assert "fingerprint" not in entry


@pytest.mark.namespace
def test_a_device_in_another_app_is_listed_with_an_error():
    entry = run_isolated("ledger_scenario", "--app-name", "Ethereum")
    assert "fingerprint" not in entry
    assert "not in either the Bitcoin" in entry["error"]
