"""``custody token``: a library's work at the command line, without a platform."""

import json

import pytest
from click.testing import CliRunner

from custody.server.cli import app
from multisig import Network
from multisig.tokens import Function, TokenAmount, TokenCall, encode_payload, listed_addresses, token_script
from tests.multisig.tokens.samples import OWNER, bytecode

BOB = bytes.fromhex("0014") + bytes(20)
CONTRACT = "c0" * 32
PAID = TokenCall(contract_id=CONTRACT, function=Function.TRANSFER, amount=TokenAmount(1_250), address=BOB)


def run(*arguments: str):
    return CliRunner().invoke(app, ["token", *arguments])


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "gold.json"
    path.write_bytes(bytecode().blob)
    return str(path)


@pytest.mark.parametrize("data", [encode_payload(PAID), token_script(PAID)], ids=["payload", "script"])
def test_a_payload_in_words_with_its_tokens_bytecode_and_without(data, code):
    known = run("decode", data.hex(), "--bytecode", code, "--network", "regtest")
    assert known.exit_code == 0, known.output
    assert "Send 12.50 GOLD tokens to bcrt1q" in known.output
    assert encode_payload(PAID).hex() in known.output
    unknown = json.loads(run("decode", data.hex(), "--json").output)
    assert "1250 raw units of tokens that this machine does not know" in unknown["sentence"]
    assert unknown["details"]["contract"] == CONTRACT


def test_a_deployments_list_is_told_whole_and_a_calls_token_lists_nobody(tmp_path):
    token, path = bytecode(whitelist=(BOB, OWNER)), tmp_path / "listing.json"
    path.write_bytes(token.blob)
    options = ("--bytecode", str(path), "--network", "regtest")
    deployment = encode_payload(token.deployment).hex()
    addresses = list(listed_addresses(token, Network.REGTEST))
    assert json.loads(run("decode", deployment, *options, "--json").output)["listed"] == addresses
    said = run("decode", deployment, *options).output
    for number, address in enumerate(addresses, 1):
        assert f"listed at first, {number} of 2: {address}\n" in said
    assert token.whitelist_hash.hex() in said
    assert "listed" not in run("decode", encode_payload(PAID).hex(), *options).output


@pytest.mark.parametrize("data", ["zz", "00", "4350541200", "6a03435054", ""])
def test_what_is_no_payload_is_refused_in_words(data):
    refused = run("decode", data)
    assert refused.exit_code == 1
    assert refused.stderr.strip()
    assert "Traceback" not in refused.output
