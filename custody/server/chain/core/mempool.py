"""Transactions of the node's mempool that pay one of our scripts. Each call asks for the list of txids and
fetches only new ones. For a transaction that is not ours eight bytes of each output are kept, so that a
script which is added later is found among them: some hundred bytes for each transaction, and no more
transactions than the node itself holds.
"""

from array import array
from collections.abc import Callable
from itertools import islice

from custody.server.chain.backend import FoundOutput
from custody.server.chain.core.node import TRANSACTIONS_PER_CALL, Node
from custody.server.domain.errors import ChainUnavailable
from multisig.transaction import OutPoint, Transaction

# Mainnet's mempool changes all the time. With this many transactions the list, which takes megabytes, is
# fetched only every few seconds, or at once after a new block or script.
MANY = 5_000
MANY_SECONDS = 5.0
# The first read of a full mempool takes longer, and the next call continues it.
LOOK_SECONDS = 30.0


class MempoolView:
    """One thread at a time."""

    def __init__(self, node: Node, clock: Callable[[], float]) -> None:
        self._node = node
        self._clock = clock
        # Python's hash of each output's script. It has a random key in each process (SipHash), so an attacker
        # cannot construct collisions.
        self._examined: dict[str, bytes] = {}
        self._paying: dict[str, tuple[FoundOutput, ...]] = {}
        self._scripts: frozenset[bytes] = frozenset()
        self._asked: frozenset[bytes] | None = None
        self._tip: str | None = None
        self._looked_at = 0.0

    def look(self, scripts: frozenset[bytes], tip: str) -> tuple[FoundOutput, ...]:
        """Outputs that pay one of the scripts, or one of an earlier call; `tip` is the hash of the last
        block.

        Raises ChainUnavailable.
        """
        now = self._clock()
        # Callers pass the same, possibly large set each time: it is not compared again.
        new = frozenset() if scripts is self._asked else scripts - self._scripts
        recent = self._tip == tip and not new and now < self._looked_at + MANY_SECONDS
        if not (recent and len(self._examined) >= MANY):
            self._refresh(new, now + LOOK_SECONDS)
            self._tip, self._looked_at, self._asked = tip, now, scripts
        return tuple(found for outputs in self._paying.values() for found in outputs)

    def _refresh(self, new: frozenset[bytes], deadline: float) -> None:
        self._tip = None
        self._add(new)
        waiting = self._node.mempool()
        self._forget(frozenset(waiting))
        unseen = (txid for txid in waiting if txid not in self._examined)
        while some := tuple(islice(unseen, TRANSACTIONS_PER_CALL)):
            if self._clock() > deadline:
                raise ChainUnavailable("The node's mempool is still being read.")
            self._examine(some)

    def _add(self, new: frozenset[bytes]) -> None:
        """Fetches every transaction again that may pay a new script."""
        if new:
            self._scripts |= new
            hashes = {hash(script) for script in new}
            again = [txid for txid, kept in self._examined.items() if not hashes.isdisjoint(_unpack(kept))]
            for txid in again:
                del self._examined[txid]

    def _forget(self, waiting: frozenset[str]) -> None:
        for gone in self._examined.keys() - waiting:
            del self._examined[gone]
            self._paying.pop(gone, None)

    def _examine(self, txids: tuple[str, ...]) -> None:
        for txid, transaction in zip(txids, self._node.waiting(txids), strict=True):
            if transaction is None:
                continue
            self._examined[txid] = array(
                "q", (hash(out.script_pubkey) for out in transaction.outputs)
            ).tobytes()
            paying = tuple(self._ours(transaction))
            if paying:
                self._paying[txid] = paying

    def _ours(self, transaction: Transaction) -> list[FoundOutput]:
        return [
            FoundOutput(
                OutPoint(transaction.txid, vout),
                out.amount,
                out.script_pubkey,
                None,
                None,
                coinbase=False,
                spent=None,
            )
            for vout, out in enumerate(transaction.outputs)
            if out.script_pubkey in self._scripts
        ]


def _unpack(kept: bytes) -> "array[int]":
    return array("q", kept)
