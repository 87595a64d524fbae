"""HWI's command line finds and drives the virtual Coldcard at the one address that it knows."""

import base64

import pytest

from multisig import DerivationPath, Psbt, recover_message_key, verify_signatures
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

    assert seen["signtx"]["signed"] is True
    assert verify_signatures(Psbt.parse(seen["signtx"]["psbt"]), VAULT).progress == 1
