"""docs/understand/tokens.md is what other implementations are written from: its figures are the code's."""

import re

from multisig.tokens import Function, bytecode_hash, decode_payload, encode_payload, parse_bytecode
from multisig.tokens.values import _HIDDEN
from tests.support.vectors import ROOT

PAGE = (ROOT / "docs" / "understand" / "tokens.md").read_text(encoding="utf-8")


def blocks(language=""):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_payloads_are_valid():
    examples = [bytes.fromhex(block) for block in blocks()]
    transfer, deploy = (decode_payload(example) for example in examples)
    assert (transfer.function, transfer.amount) == (Function.TRANSFER, 1_250)
    assert (deploy.ticker, deploy.whitelist_enabled, deploy.max_supply) == ("GOLD", True, 5_000)
    assert [encode_payload(payload) for payload in (transfer, deploy)] == examples


def test_the_example_bytecode_is_valid_and_has_the_hash_that_is_named():
    (block,) = blocks("json")
    blob = block.strip().encode()
    assert parse_bytecode(blob).blob == blob
    assert f"`{bytecode_hash(blob).hex()}`" in PAGE


def test_the_page_lists_the_hidden_code_points():
    listed = PAGE.partition("### Hidden code points")[2].partition("· and the last two")[0]
    found = re.findall(r"U\+([0-9A-F]{4,6})(?:–([0-9A-F]{4,6}))?", listed)
    assert [(int(first, 16), int(last or first, 16)) for first, last in found] == list(_HIDDEN)
