"""When a transaction takes the place of others in the mempool: BIP-125's rules, as Bitcoin Core holds to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from multisig.transaction import OutPoint, Transaction
from multisig.units import FeeRate, Sats

# BIP-125: an input below it says that the transaction may be replaced.
MAX_BIP125_SEQUENCE = 0xFFFFFFFD
# Core's DEFAULT_INCREMENTAL_RELAY_FEE before release 30; later nodes ask for less.
INCREMENTAL_RELAY = FeeRate(1_000)
# Core's MAX_REPLACEMENT_CANDIDATES.
MAX_EVICTED = 100


@dataclass(frozen=True)
class MempoolEntry:
    """A waiting transaction and what it pays."""

    transaction: Transaction
    fee: Sats


class NoReplacement(Exception):
    """What waits stays, and why."""


def replaced_by(
    transaction: Transaction, entries: Mapping[str, MempoolEntry], spends: Mapping[OutPoint, str]
) -> dict[str, MempoolEntry]:
    """What would leave: every entry that spends one of its coins, and whatever hangs on those. Mostly nothing.

    Raises NoReplacement for one that may not be replaced (rule 1), that the transaction itself hangs on, or where it spends
    an unconfirmed coin that what it replaces did not (rule 2), or too many would leave (rule 5).
    """
    direct = {spends[item.outpoint] for item in transaction.inputs if item.outpoint in spends}
    leaving = {txid: entries[txid] for first in direct for txid in _with_descendants(first, entries, spends)}
    for txid in direct:
        if not signals(entries[txid].transaction):
            raise NoReplacement(
                f"{txid} in the mempool spends the same coin, and does not let itself be replaced"
            )
    if len(leaving) > MAX_EVICTED:
        raise NoReplacement(f"{len(leaving)} transactions would have to leave the mempool")
    known = {item.outpoint.txid for txid in direct for item in entries[txid].transaction.inputs}
    for item in transaction.inputs if leaving else ():
        parent = item.outpoint.txid
        if parent in leaving or (parent in entries and parent not in known):
            raise NoReplacement(f"it spends {parent}, which is unconfirmed itself")
    return leaving


def require_higher_fee(transaction: Transaction, fee: Sats, leaving: Mapping[str, MempoolEntry]) -> None:
    """Rules 3 and 4: it pays what leaves pays, and its own way beside; and more for each byte than what it replaces.

    Raises NoReplacement.
    """
    if not leaving:
        return
    least = sum(entry.fee for entry in leaving.values()) + INCREMENTAL_RELAY.fee_for(transaction.vsize)
    if fee < least:
        raise NoReplacement(f"insufficient fee: {fee} sat, and what it replaces asks for {least} sat")
    spent = {item.outpoint for item in transaction.inputs}
    for entry in leaving.values():
        is_direct = not spent.isdisjoint(item.outpoint for item in entry.transaction.inputs)
        if is_direct and fee * entry.transaction.vsize <= entry.fee * transaction.vsize:
            raise NoReplacement("insufficient fee: it pays no more for each byte than what it replaces")


def signals(transaction: Transaction) -> bool:
    return any(item.sequence <= MAX_BIP125_SEQUENCE for item in transaction.inputs)


def _with_descendants(
    txid: str, entries: Mapping[str, MempoolEntry], spends: Mapping[OutPoint, str]
) -> Iterator[str]:
    waiting, seen = [txid], {txid}
    while waiting:
        found = waiting.pop()
        yield found
        for vout in range(len(entries[found].transaction.outputs)):
            child = spends.get(OutPoint(found, vout))
            if child is not None and child not in seen:
                seen.add(child)
                waiting.append(child)
