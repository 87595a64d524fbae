"""``custody token``: decode a token's payload from bytes alone, without a platform."""

from collections.abc import Iterator
from pathlib import Path

import click

from custody.cli.common import fail, json_option
from custody.common.terminal import give
from custody.server.cli.common import CHAINS
from multisig import MultisigError, Network, Transaction
from multisig.tokens import (
    MAX_BYTECODE_BYTES,
    Bytecode,
    Payload,
    TokenCall,
    decode_payload,
    is_token_payload,
    listed_addresses,
    parse_bytecode,
    token_of_script,
    token_words,
)

OP_RETURN = 0x6A


@click.group()
def token() -> None:
    """Decode a token's payload from bytes alone."""


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
def decode_command(data: str, bytecode: Path | None, network: str, as_json: bool) -> None:
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
        as_json=as_json,
    )


def _payload_in(text: str) -> Payload:
    """Raises ValueError, MultisigError."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise ValueError("This is no hex: give a payload, an output's script or a transaction.") from None
    if is_token_payload(data):
        return decode_payload(data)
    scripts = [data] if data[:1] == bytes((OP_RETURN,)) else _outputs(data)
    found = [payload for script in scripts if (payload := token_of_script(script)) is not None]
    if len(found) != 1:
        raise ValueError("There is no token's data in it, or there are several.")
    return found[0]


def _outputs(raw: bytes) -> Iterator[bytes]:
    return (output.script_pubkey for output in Transaction.parse(raw).outputs)


def _read(path: Path) -> Bytecode:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that an endless file is refused as too long.
            return parse_bytecode(file.read(MAX_BYTECODE_BYTES + 1))
    except (OSError, MultisigError) as error:
        fail(f"{path} is no bytecode: {error}", "Save the member bytecode of GET contract as it is.")
