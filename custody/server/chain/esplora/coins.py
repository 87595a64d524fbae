"""From a script's history to its coins. Pure: amounts and scripts come from the transactions' own bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from custody.server.chain.backend import BlockRef, FoundOutput, Spend
from custody.server.chain.esplora.blocks import Moved
from custody.server.chain.esplora.transactions import is_coinbase
from multisig.transaction import OutPoint, Transaction


@dataclass(frozen=True)
class Sighting:
    """A transaction that pays a script or spends from it. `block` is None while it waits in the mempool."""

    transaction: Transaction
    block: BlockRef | None


@dataclass(frozen=True)
class History:
    """What happened to a script: `confirmed` from the oldest on, and the coins that follow from all of it.

    `tip` is the hash of the tip at which it was asked, `asked_at` the clock's time.
    """

    confirmed: tuple[Sighting, ...]
    outputs: tuple[FoundOutput, ...]
    tip: str
    asked_at: float


def outputs_of(script: bytes, sightings: Sequence[Sighting]) -> tuple[FoundOutput, ...]:
    """Every output that pays the script, with whoever spends it. Raises Moved where one is spent twice."""
    paid = {outpoint: sighting for sighting in sightings for outpoint in _paid(script, sighting)}
    spends: dict[OutPoint, Spend] = {}
    for sighting, outpoint in _spends(sightings, paid):
        if outpoint in spends:
            raise Moved("The explorer shows two spends of one coin.")
        height = None if sighting.block is None else sighting.block.height
        spends[outpoint] = Spend(sighting.transaction.txid, height)
    return tuple(_found(outpoint, sighting, spends.get(outpoint)) for outpoint, sighting in paid.items())


def spenders_in(script: bytes, sightings: Sequence[Sighting]) -> tuple[Transaction, ...]:
    """The transactions that spend the script's coins."""
    paid = {outpoint for sighting in sightings for outpoint in _paid(script, sighting)}
    found = {sighting.transaction.txid: sighting.transaction for sighting, _ in _spends(sightings, paid)}
    return tuple(found.values())


def touched_since(found: FoundOutput, height: int) -> bool:
    """Whether it was created or spent at that height, above it, or in the mempool."""
    created = found.height is None or found.height >= height
    spent = found.spent is not None and (found.spent.height is None or found.spent.height >= height)
    return created or spent


def _paid(script: bytes, sighting: Sighting) -> Iterator[OutPoint]:
    for vout, output in enumerate(sighting.transaction.outputs):
        if output.script_pubkey == script:
            yield OutPoint(sighting.transaction.txid, vout)


def _spends(sightings: Sequence[Sighting], coins: Iterable[OutPoint]) -> Iterator[tuple[Sighting, OutPoint]]:
    ours = frozenset(coins)
    for sighting in sightings:
        for txin in sighting.transaction.inputs:
            if txin.outpoint in ours:
                yield sighting, txin.outpoint


def _found(outpoint: OutPoint, sighting: Sighting, spent: Spend | None) -> FoundOutput:
    output = sighting.transaction.outputs[outpoint.vout]
    return FoundOutput(
        outpoint=outpoint,
        amount=output.amount,
        script_pubkey=output.script_pubkey,
        height=None if sighting.block is None else sighting.block.height,
        block_hash=None if sighting.block is None else sighting.block.hash,
        coinbase=is_coinbase(sighting.transaction),
        spent=spent,
    )
