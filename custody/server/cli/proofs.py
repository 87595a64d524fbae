"""``custody proof verify``: check a proof file, without a platform.
Exit status: 0 it is valid, and so are its coins where a chain was named; 7 it is invalid or inconclusive.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from custody.cli.common import fail, json_option, wants_json
from custody.common.terminal import Exit, answer, put
from custody.common.text import amount, count, plain
from custody.server.cli.common import refusals

if TYPE_CHECKING:
    from custody.schemas.proofs import CoinOfProof, ProofFile
    from custody.server.chain.backend import ChainBackend
    from custody.server.rules.proving import CheckedProof

MAX_FILE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Checked:
    """The chain's answer. ``problems``: about coins at the file's block; ``spent``: coins spent by now."""

    tip_height: int
    problems: tuple[str, ...]
    spent: tuple[str, ...]


@click.group()
def proof() -> None:
    """Proofs of control."""


@proof.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--chain",
    metavar="KIND:URL",
    help="Check the coins there, as CUSTODY_CHAIN_… names a node (bitcoind:…) or an explorer (esplora:…). "
    "Without it no coin is checked.",
)
@json_option
def verify_command(file: Path, chain: str | None) -> None:
    """Check a proof file (BIP-322): which addresses signed which message, and for which coins."""
    from custody.server.chain.engine import consensus
    from custody.server.rules.proving import judge
    from multisig.bip322 import ProofState

    with refusals():
        shown = _read(file)
        judged = judge(shown, consensus)
        state = judged.state(asked_chain=chain is not None)
        checked = None if chain is None or state != "valid" else _checked(shown, chain)
        if checked is not None and checked.problems:
            state = ProofState.INVALID
    if wants_json():
        answer({"state": state, **_as_json(shown, judged, checked)})
    else:
        why = ": the chain says otherwise" if checked is not None and checked.problems else ""
        put(f"The proof is {state}, on {shown.network}{why}.")
        # The file's maker chose every character: printed in ASCII, on one line, and never cut.
        put(f"Message: {json.dumps(shown.message)}")
        for line in _lines(shown, judged, checked):
            put(plain(line))
    if state != "valid":
        raise click.exceptions.Exit(Exit.NOT_DECIDED)


def _read(path: Path) -> "ProofFile":
    from pydantic import ValidationError

    from custody.schemas.proofs import ProofFile

    with path.open("rb") as opened:
        content = opened.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        fail(f"{path} is larger than {MAX_FILE_BYTES} bytes.", "A proof file is one small JSON document.")
    try:
        return ProofFile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        hint = "Ask for the original file."
        fail(f"{path} is not a proof file: {where}: {first['msg']}.", hint)


def _checked(proof: "ProofFile", chain: str) -> Checked:
    from custody.server.chain.configuration import (
        PREFIX,
        REMOTE,
        REMOTE_WORDS,
        open_backend,
        read_sources,
    )
    from multisig import Network

    network = Network(proof.network)
    name = f"{PREFIX}{network.name}"
    options = {key: value for key, value in os.environ.items() if key.startswith(f"{name}_")}
    if chain.partition(":")[0] not in REMOTE:
        fail(
            f"--chain begins with {REMOTE_WORDS}.",
            "The page 'The chain' of the documentation has examples.",
            Exit.USAGE,
        )
    source = read_sources({**options, name: chain})[network]
    backend = open_backend(source, folder=Path(), clock=lambda: 0.0)
    try:
        return check_coins(proof, backend)
    finally:
        backend.close()


def check_coins(proof: "ProofFile", backend: "ChainBackend") -> Checked:
    """Check that each coin existed unspent at the file's block. Raises ChainUnavailable."""
    from multisig import Network, decode_address

    tip, network = backend.tip(), Network(proof.network)
    if proof.height is None:
        return Checked(tip.height, (), ())
    block = backend.block_at(proof.height)
    if block is None or block.hash != proof.block_hash:
        return Checked(tip.height, (f"The chain has another block at height {proof.height:,}.",), ())
    scripts = {decode_address(coin.address, network) for coin in proof.coins}
    on_chain = {str(one.outpoint): one for one in (backend.outputs_to(scripts) if scripts else ())}
    problems, spent = [], []
    for coin in proof.coins:
        there = on_chain.get(coin.outpoint)
        if (
            there is None
            or there.block is None
            or there.block.height > proof.height
            or there.script_pubkey != decode_address(coin.address, network)
            or there.amount != coin.amount_sats
        ):
            problems.append(f"The chain had no coin {coin.outpoint} as it is stated.")
        elif there.spent is not None:
            spent.append(coin.outpoint)
            if there.spent.block is not None and there.spent.block.height <= proof.height:
                problems.append(f"The coin {coin.outpoint} had been spent by then.")
    return Checked(tip.height, tuple(problems), tuple(spent))


def _as_json(proof: "ProofFile", judged: "CheckedProof", checked: Checked | None) -> dict[str, Any]:
    return {
        "network": proof.network,
        "message": proof.message,
        "addresses": [
            {
                "address": address,
                "state": verdict.state,
                "reason": verdict.reason,
                "lock_time": verdict.lock_time,
                "age": verdict.age,
            }
            for address, verdict in judged.verdicts.items()
        ],
        "height": proof.height,
        "block_hash": proof.block_hash,
        "coins": [{**coin.model_dump(), "signed": coin in judged.signed} for coin in proof.coins],
        "signed_sats": _total(judged.signed),
        "unsigned_sats": _total(judged.unsigned),
        "problems": list(judged.problems),
        "chain": None if checked is None else asdict(checked),
    }


def _lines(proof: "ProofFile", judged: "CheckedProof", checked: Checked | None) -> Iterator[str]:
    for address, verdict in judged.verdicts.items():
        yield f"{_shown(address, proof)}: {verdict.state}{f'. {verdict.reason}' if verdict.reason else ''}"
        if verdict.lock_time or verdict.age:
            yield f"  valid at time {verdict.lock_time} and age {verdict.age}"
    yield from judged.problems
    for coins, how in ((judged.signed, "signed for"), (judged.unsigned, "that no signature names")):
        if coins:
            block = f"block {proof.height:,} ({proof.block_hash})"
            yield f"{count(len(coins), 'coin', 'coins')} {how}, {amount(_total(coins))}, at {block}:"
        for coin in coins:
            yield f"  {coin.outpoint}  {amount(coin.amount_sats)}  {_shown(coin.address, proof)}"
    if not proof.coins:
        yield "It speaks of no coins."
    yield from _of_chain(proof, judged, checked)


def _total(coins: "Sequence[CoinOfProof]") -> int:
    return sum(coin.amount_sats for coin in coins)


def _shown(address: str, proof: "ProofFile") -> str:
    """The address unchanged if it is valid; any other text of the file's maker is quoted."""
    from multisig import MultisigError, Network, decode_address

    try:
        decode_address(address, Network(proof.network))
    except MultisigError:
        return json.dumps(address)
    return address


def _of_chain(proof: "ProofFile", judged: "CheckedProof", checked: Checked | None) -> Iterator[str]:
    if checked is None:
        if judged.unsigned:
            yield (
                f"No signature names {len(judged.unsigned)} of the coins. A chain alone can tell whether "
                "they were at an address that signed: name one with --chain."
            )
        if proof.coins:
            yield "No chain was asked: whether these coins existed, and are still unspent, was not checked."
        return
    yield from checked.problems
    if not checked.problems and proof.coins:
        yield f"The chain, at block {checked.tip_height:,}, had each of these coins unspent at that block."
    for outpoint in checked.spent:
        yield f"The coin {outpoint} has been spent since."
