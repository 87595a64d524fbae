"""Rigs of the chain's contract suite: a backend, and controls that change its chain independently of it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from custody.server.chain.backend import BlockRef, ChainBackend, FoundOutput, RefusalCode
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.embedded.mining import MINER_WITNESS_SCRIPT
from multisig.transaction import Transaction
from multisig.units import Sats
from tests.support.regtest import FakeClock, coin_of, mine_branch, open_address, open_output

# Core's words for the embedded mempool's refusals, as `sendrawtransaction` says them with code -26.
REASONS = {
    RefusalCode.MISSING_INPUTS: "bad-txns-inputs-missingorspent",
    RefusalCode.CONFLICT: "insufficient fee",
    RefusalCode.NON_FINAL: "non-final",
    RefusalCode.IMMATURE: "bad-txns-premature-spend-of-coinbase",
    RefusalCode.FEE_TOO_LOW: "min relay fee not met",
    RefusalCode.FEE_TOO_HIGH: "max-fee-exceeded",
    RefusalCode.INVALID_SCRIPT: "mandatory-script-verify-flag-failed (Witness program hash mismatch)",
    RefusalCode.MALFORMED: "bad-txns-in-belowout",
    RefusalCode.TOO_LARGE: "tx-size",
}


class Rig(Protocol):
    """Coins on its chain pay ``open_script(number)``,
    which any key may spend (see tests/support/regtest.py).

    Many tests may share a chain: a test asks for unused numbers and relies on no height.
    """

    @property
    def backend(self) -> ChainBackend:
        """The backend under test; it may be another object after `down`."""
        ...

    def fresh(self) -> int:
        """The number of an unused open script."""
        ...

    def mine(self, count: int = 1, *, empty: bool = False) -> tuple[BlockRef, ...]:
        """Mines on the tip; the first block takes the whole mempool, unless ``empty``."""
        ...

    def mine_block(self, transactions: Sequence[Transaction]) -> BlockRef:
        """One block with exactly these transactions, which need not be in the mempool."""
        ...

    def coinbase_script(self, height: int) -> bytes:
        """The witness script that the block's coinbase pays; it needs no further witness."""
        ...

    def fund(self, number: int, amount: int) -> str:
        """Pays ``open_script(number)``, into the mempool; returns the txid."""
        ...

    def send(self, transaction: Transaction) -> None:
        """Another wallet broadcasts it."""
        ...

    def reorganise(
        self, depth: int, length: int, transactions: Sequence[Transaction] = ()
    ) -> tuple[BlockRef, ...]:
        """A longer branch from ``depth`` blocks below the tip; its first block has only ``transactions``.
        Transactions that it leaves out return to the mempool where still valid.
        """
        ...

    def forget(self) -> None:
        """Empties the mempool, as by expiry."""
        ...

    def down(self) -> AbstractContextManager[None]:
        """The backend's server does not answer inside the context; afterwards `backend` works again."""
        ...


def confirmed_coin(rig: Rig, amount: int = 100_000) -> tuple[FoundOutput, int]:
    """A confirmed coin of an unused open script, and the script's number."""
    number = rig.fresh()
    txid = rig.fund(number, amount)
    rig.mine()
    return coin_of(rig.backend, txid, open_output(number)), number


class EmbeddedRig:
    """The embedded chain is both backend and controls. A rig of a backend before it overrides two methods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = FakeClock()
        self._used = 0
        self.chain = self._open()

    def _open(self) -> EmbeddedChain:
        return EmbeddedChain(self._folder, clock=self._clock)

    def close(self) -> None:
        self.chain.close()

    @property
    def backend(self) -> ChainBackend:
        return self.chain

    def fresh(self) -> int:
        self._used += 1
        return self._used

    def mine(self, count: int = 1, *, empty: bool = False) -> tuple[BlockRef, ...]:
        return self.chain.mine(count, empty=empty)

    def mine_block(self, transactions: Sequence[Transaction]) -> BlockRef:
        (block,) = mine_branch(self.chain, 0, 1, transactions)
        return block

    def coinbase_script(self, height: int) -> bytes:
        return MINER_WITNESS_SCRIPT

    def fund(self, number: int, amount: int) -> str:
        return self.chain.fund(open_address(number), Sats(amount))

    def send(self, transaction: Transaction) -> None:
        self.chain.broadcast(transaction)

    def reorganise(
        self, depth: int, length: int, transactions: Sequence[Transaction] = ()
    ) -> tuple[BlockRef, ...]:
        return mine_branch(self.chain, depth, length, transactions)

    def forget(self) -> None:
        self.chain._mempool._entries.clear()
        self.chain._mempool._spends.clear()

    @contextmanager
    def down(self) -> Iterator[None]:
        self.chain.close()
        try:
            yield
        finally:
            self.chain = self._open()
