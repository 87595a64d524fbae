"""``custody token``: decode a token's payload, and derive the state of a chain's tokens, from bytes alone:
without a platform.
"""

import json
from pathlib import Path
from typing import Any, TextIO

import click

from custody.cli.common import fail, give, json_option, lines_option, wants_json
from custody.common.terminal import put, say
from custody.server.cli.common import CHAINS
from multisig import MultisigError, Network, Transaction
from multisig.tokens import (
    MAX_BYTECODE_BYTES,
    Bytecode,
    Payload,
    TokenCall,
    bytecode_hash,
    decode_payload,
    is_token_payload,
    listed_addresses,
    parse_bytecode,
    token_of_script,
    token_words,
)
from multisig.tokens.machine import (
    GENESIS_STATE,
    BlockOutcome,
    TokenBlock,
    TokenCells,
    TokenOutcome,
    TokenTransaction,
    judge_block,
)

OP_RETURN = 0x6A
HASH_BYTES = 32
# Heights have 32 bits in Bitcoin (BIP-34, lock times).
MAX_HEIGHT = 2**32 - 1


@click.group()
def token() -> None:
    """Decode a token's payload, and derive the state of a chain's tokens, from bytes alone."""


@token.command("decode")
@click.argument("data", metavar="HEX", help="A payload, an OP_RETURN output script or a transaction.")
@click.option(
    "--bytecode",
    type=click.Path(path_type=Path),
    help="The token's bytecode, for its name and for whole tokens.",
)
@click.option(
    "--network",
    default="mainnet",
    type=click.Choice(CHAINS),
    help="How addresses are written.",
)
@json_option
def decode_command(data: str, bytecode: Path | None, network: str) -> None:
    """Say in words what a token's payload does. For a call nothing proves that the bytecode is of its token:
    you say so.
    """
    chain = Network(network)
    try:
        payload, known = _payload_in(data), None if bytecode is None else _read(bytecode)
        words = token_words(payload, chain, known)
    except (MultisigError, ValueError) as error:
        fail(str(error) or "That is no hex.", "custody token decode --help says what it takes.")
    listed = () if known is None or isinstance(payload, TokenCall) else tuple(listed_addresses(known, chain))
    shown = {
        "sentence": words.sentence,
        "details": dict(words.details),
        "listed": listed,
        "hex": words.hex,
    }
    give(
        shown,
        words.sentence,
        *(f"  {label}: {value}" for label, value in words.details),
        *(f"  listed at first, {n} of {len(listed)}: {address}" for n, address in enumerate(listed, 1)),
        f"  hex: {words.hex}",
    )


@token.command("replay")
@click.argument(
    "blocks",
    type=click.File(errors="replace"),
    metavar="FILE",
    help="One block a line, in order; - for standard input.",
)
@click.option(
    "--bytecode",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A bytecode that deployments commit to; may be repeated.",
)
@lines_option
def replay_command(blocks: TextIO, bytecode: tuple[Path, ...]) -> None:
    """Derive every token's state from blocks of your own: {"height", "hash", "transactions": [{"txid",
    "caller", "data"}]}.

    Hashes and ids are hex as they are written, ``caller`` is the output script that the first input spends,
    ``data`` what the one OP_RETURN output pushes, or null where there are several. Blocks and transactions
    without tokens' data may be left out, but then the state hash is another one.
    """
    codes = {bytecode_hash(code.blob): code for code in map(_read, bytecode or ())}
    cells, state, height = TokenCells(), GENESIS_STATE, -1
    for number, line in enumerate(blocks, 1):
        block = _block_of(line, number)
        if block.height <= height:
            fail(f"Block {block.height} comes after block {height}.", "Put the blocks in order.")
        done = judge_block(block, cells, codes.get, state)
        cells.apply(done.effects)
        state, height = done.state, block.height
        _tell(done)
    _conclude(cells, state)


def _tell(done: BlockOutcome) -> None:
    if wants_json():
        outcomes = [_plain(outcome) for outcome in done.outcomes]
        put(json.dumps({"height": done.height, "state": done.state.hex(), "outcomes": outcomes}))
        return
    say(f"{done.height} {done.state.hex()}")
    for outcome in done.outcomes:
        effect = outcome.failure or ("done" if outcome.known else "unknown: its bytecode was not given")
        say(f"  {outcome.txid} {_function(outcome) or 'unreadable'}: {effect}")


def _conclude(cells: TokenCells, state: bytes) -> None:
    """Print every cell with a value, in order. Numbers as text: a raw amount may have more digits than JSON
    parsers keep.
    """
    rows = [
        {
            "contract_id": contract_id,
            "cell": cell.name.lower(),
            "holder": holder.hex(),
            "value": value.hex() if isinstance(value, bytes) else str(value),
        }
        for (contract_id, cell, holder), value in sorted(cells.cells.items())
    ]
    if wants_json():
        put(json.dumps({"state": state.hex(), "cells": rows}))
        return
    for row in rows:
        name = f"{row['cell']} {row['holder']}".strip()
        say(f"{row['contract_id']} {name}: {row['value']}")


def _plain(outcome: TokenOutcome) -> dict[str, Any]:
    return {
        "txid": outcome.txid,
        "contract_id": outcome.contract_id,
        "function": _function(outcome),
        "failure": outcome.failure,
        "known": outcome.known,
    }


def _function(outcome: TokenOutcome) -> str | None:
    if outcome.payload is None:
        return None
    function = getattr(outcome.payload, "function", None)
    return "deploy" if function is None else function.wire_name


def _payload_in(text: str) -> Payload:
    """Raises ValueError, MultisigError."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise ValueError("This is no hex: give a payload, an output's script or a transaction.") from None
    if is_token_payload(data):
        return decode_payload(data)
    is_script = data[:1] == bytes((OP_RETURN,))
    scripts = [data] if is_script else [each.script_pubkey for each in Transaction.parse(data).outputs]
    payloads = [payload for script in scripts if (payload := token_of_script(script)) is not None]
    if len(payloads) != 1:
        raise ValueError("There is no token's data in it, or there are several.")
    return payloads[0]


def _block_of(line: str, number: int) -> TokenBlock:
    try:
        block = json.loads(line)
        transactions = tuple(map(_transaction_of, block["transactions"]))
        return TokenBlock(_height_of(block["height"]), _hash_of(block["hash"])[::-1], transactions)
    except (ValueError, KeyError, TypeError, RecursionError):
        fail(f"Line {number} is no block.", "custody token replay --help says what a line looks like.")


def _transaction_of(given: dict[str, Any]) -> TokenTransaction:
    data = given["data"]
    return TokenTransaction(
        _hash_of(given["txid"]).hex(),
        bytes.fromhex(given["caller"]),
        None if data is None else bytes.fromhex(data),
    )


def _height_of(given: object) -> int:
    if type(given) is not int or not 0 <= given <= MAX_HEIGHT:
        raise ValueError("That is not a height.")
    return given


def _hash_of(given: str) -> bytes:
    digest = bytes.fromhex(given)
    if len(digest) != HASH_BYTES:
        raise ValueError("A hash has 32 bytes.")
    return digest


def _read(path: Path) -> Bytecode:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that an endless file is refused as too long.
            return parse_bytecode(file.read(MAX_BYTECODE_BYTES + 1))
    except (OSError, MultisigError) as error:
        fail(f"{path} is no bytecode: {error}", "Save the member bytecode of GET contract as it is.")
