"""HWI's command line finds and drives the virtual Coldcard at the one address that it knows."""

import base64

import pytest

from multisig import (
    DerivationPath,
    Network,
    Psbt,
    encode_address,
    p2wpkh,
    recover_message_key,
    verify_signatures,
)
from tests.support.coldcard import NETWORK, SEED, VAULT
from tests.support.namespace import run_isolated

PATH = DerivationPath.parse("m/48h/1h/0h/2h")


@pytest.mark.namespace
def test_hwi_enumerates_reads_keys_and_signs():
    seen = run_isolated("coldcard_scenario")

    (entry,) = [device for device in seen["enumerate"] if device["type"] == "coldcard"]
    assert entry["fingerprint"] == SEED.fingerprint.hex
    assert entry["model"] == "coldcard_simulator"
    assert "error" not in entry

    xpub = str(SEED.xpub(PATH, NETWORK))
    assert seen["getxpub"] == seen["found"] == {"xpub": xpub}

    signature = base64.b64decode(seen["signmessage"]["signature"])
    assert recover_message_key("hello there", signature) == SEED.public_key(DerivationPath.parse("m/0"))

    single = p2wpkh(SEED.public_key(DerivationPath.parse("m/84h/1h/0h/0/5")))
    assert seen["address"] == {"address": encode_address(single, Network.TESTNET4)}
    shown = encode_address(VAULT.script_pubkey(0, 0), Network.TESTNET4)
    assert seen["vault_address"] == {"address": shown}

    assert seen["signtx"]["signed"] is True
    assert verify_signatures(Psbt.parse(seen["signtx"]["psbt"]), VAULT).progress == 1
