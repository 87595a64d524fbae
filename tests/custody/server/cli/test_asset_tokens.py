"""``custody token``: a library's work at the command line, without a platform."""

import json
from functools import partial

import pytest

from multisig import Network
from multisig.tokens import Function, TokenAmount, TokenCall, encode_payload, listed_addresses, token_script
from multisig.tokens.machine import GENESIS_STATE, TokenBlock, TokenCells, TokenTransaction, judge_block
from tests.multisig.tokens.samples import OWNER, bytecode
from tests.support.operator import custody

BOB = bytes.fromhex("0014") + bytes(20)
CONTRACT = "c0" * 32
PAID = TokenCall(contract_id=CONTRACT, function=Function.TRANSFER, amount=TokenAmount(1_250), address=BOB)


run = partial(custody, "token")


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


def chain() -> list[dict]:
    start = encode_payload(TokenCall(contract_id=CONTRACT, function=Function.INIT))
    payloads = encode_payload(bytecode().deployment), start, encode_payload(PAID)
    calls = zip((CONTRACT, "01" * 32, "02" * 32), payloads, strict=True)
    sent = [{"txid": txid, "caller": OWNER.hex(), "data": data.hex()} for txid, data in calls]
    return [
        {"height": height, "hash": f"{height:064x}", "transactions": [each]}
        for height, each in enumerate(sent, 7)
    ]


def test_a_replay_ends_where_the_machine_does(tmp_path, code):
    path = tmp_path / "blocks.jsonl"
    path.write_text("".join(json.dumps(block) + "\n" for block in chain()))
    answer = run("replay", str(path), "--bytecode", code, "--json")
    assert answer.exit_code == 0, answer.output
    *told, end = map(json.loads, answer.stdout.splitlines())
    state, before, hashes = TokenCells(), GENESIS_STATE, []
    for block in chain():
        found = tuple(
            TokenTransaction(each["txid"], bytes.fromhex(each["caller"]), bytes.fromhex(each["data"]))
            for each in block["transactions"]
        )
        read = TokenBlock(block["height"], bytes.fromhex(block["hash"])[::-1], found)
        done = judge_block(read, state, {bytecode().deployment.bytecode_hash: bytecode()}.get, before)
        state.apply(done.effects)
        before = done.state
        hashes.append(done.state.hex())
    assert [line["state"] for line in told] == hashes
    assert end["state"] == hashes[-1]
    balances = {row["holder"]: row["value"] for row in end["cells"] if row["cell"] == "balance"}
    assert balances == {OWNER.hex(): "98750", BOB.hex(): "1250"}
    assert "transfer: done" in run("replay", str(path), "--bytecode", code).output


def changed(**members) -> str:
    return json.dumps(chain()[1] | members) + "\n"


@pytest.mark.parametrize(
    "lines",
    [
        "nothing\n",
        "[]\n",
        '{"height": 1}\n',
        pytest.param("[" * 100_000 + "\n", id="deep"),
        pytest.param(changed(height=float("inf")), id="endless height"),
        pytest.param(changed(height=2**64), id="height beyond a cell"),
        pytest.param(changed(height=8.5), id="half a height"),
        pytest.param(changed(hash="00"), id="short hash"),
        pytest.param(
            changed(transactions=[chain()[1]["transactions"][0] | {"txid": ""}]), id="no transaction id"
        ),
    ],
)
def test_a_line_that_is_no_block_is_named(lines):
    answer = run("replay", "-", typed=json.dumps(chain()[0]) + "\n" + lines)
    assert answer.exit_code == 1
    assert "Line 2" in answer.stderr


def test_blocks_out_of_order_are_refused():
    first, second, _ = (json.dumps(block) + "\n" for block in chain())
    answer = run("replay", "-", typed=second + first)
    assert answer.exit_code == 1
    assert "comes after" in answer.stderr
