"""Bitcoin Core's consensus engine in this process: the one module that knows `pbk`.

A wrong argument does not raise in the engine, it aborts the whole process; a script failure does not raise
either, it returns zero; and `process_block` reports success for a block it then finds invalid. So every
argument is checked here first, and every answer is read where the engine really gives it.
"""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from multisig.transaction import Transaction, TxOut
from multisig.units import MAX_MONEY

if TYPE_CHECKING:
    # A tenth of a second: loaded with the first transaction, for an operator's command reads none.
    import pbk

# Consensus: a block weighs at most four million units, and so does what it carries.
MAX_BLOCK_WEIGHT = 4_000_000
MAX_BLOCK_BYTES = 4_000_000
HEADER_BYTES = 80
# The engine compares a previous block's spending script byte by byte; nothing above this can be spent anyway.
MAX_SCRIPT_BYTES = 10_000
NULL_TXID = "00" * 32


class InvalidSpend(Exception):
    """A transaction that consensus forbids. `input_index` names the input at fault, where one is."""

    def __init__(self, reason: str, input_index: int | None = None) -> None:
        super().__init__(reason if input_index is None else f"Input {input_index}: {reason}")
        self.input_index = input_index


class InvalidBlock(Exception):
    """A block that consensus forbids: nothing changed."""


class ChainClosed(Exception):
    """The chainstate was closed."""


def verify_transaction(transaction: Transaction, spent: Sequence[TxOut]) -> None:
    """Check every input of `transaction` under all consensus rules for scripts, and that it creates no money.

    `spent` holds the outputs it spends, in the order of its inputs. Policy (low S, SIGHASH_ALL, fees) is not
    looked at. Raises InvalidSpend.
    """
    import pbk

    _guard(transaction, spent)
    raw = transaction.serialize()
    native = pbk.Transaction(raw)
    if len(native.inputs) != len(spent) or str(native.txid) != transaction.txid:
        raise InvalidSpend("the engine reads another transaction than we do")
    outputs = [pbk.TransactionOutput(pbk.ScriptPubkey(out.script_pubkey), int(out.amount)) for out in spent]
    precomputed = pbk.script.PrecomputedTransactionData(native, outputs)
    for index, out in enumerate(spent):
        script, flags = pbk.ScriptPubkey(out.script_pubkey), pbk.ScriptVerificationFlags.ALL
        try:
            valid = script.verify(int(out.amount), native, precomputed, index, flags)
        except pbk.ScriptVerifyException as error:
            raise InvalidSpend(str(error), index) from error
        if not valid:
            raise InvalidSpend("the script does not allow this spend", index)


def consensus(transaction: Transaction, spent: Sequence[TxOut]) -> str | None:
    """Why `verify_transaction` forbids it; None where it does not (`multisig.bip322.Consensus`)."""
    try:
        verify_transaction(transaction, spent)
    except InvalidSpend as error:
        return str(error)
    return None


def _guard(transaction: Transaction, spent: Sequence[TxOut]) -> None:
    if not transaction.inputs or not transaction.outputs:
        raise InvalidSpend("a transaction needs an input and an output")
    if len(spent) != len(transaction.inputs):
        raise InvalidSpend(f"{len(transaction.inputs)} inputs but {len(spent)} spent outputs")
    if transaction.weight > MAX_BLOCK_WEIGHT:
        raise InvalidSpend("heavier than a block")
    outpoints = [txin.outpoint for txin in transaction.inputs]
    if len(set(outpoints)) != len(outpoints):
        raise InvalidSpend("an input appears twice")
    if any(outpoint.txid == NULL_TXID for outpoint in outpoints):
        raise InvalidSpend("a coinbase spends nothing")
    for out in (*spent, *transaction.outputs):
        if not 0 <= out.amount <= MAX_MONEY:
            raise InvalidSpend("an amount is out of range")
    if any(len(out.script_pubkey) > MAX_SCRIPT_BYTES for out in spent):
        raise InvalidSpend("a spent script is too long ever to be satisfied")
    paid_in, paid_out = sum(out.amount for out in spent), sum(out.amount for out in transaction.outputs)
    if paid_out > MAX_MONEY or paid_in < paid_out:
        raise InvalidSpend("it pays out more than it spends")


class Chainstate:
    """A regtest chain validated by the engine, kept in memory but for the block files the engine insists on.

    `folder` belongs to it alone and is emptied when it opens: what lasts is the caller's own block store,
    because a kill loses whatever the engine had since it was opened. One thread at a time.
    """

    def __init__(self, folder: Path) -> None:
        import pbk

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._refused: list[str] = []
        refused = self._refused

        def block_checked(_user_data: object, _block: object, state: pbk.BlockValidationState) -> None:
            # Without a reference to the chainstate, which closes when it is let go.
            if state.validation_mode != pbk.ValidationMode.VALID:
                refused.append(state.block_validation_result.name.lower())

        callbacks = pbk.ValidationInterfaceCallbacks(block_checked=block_checked)
        context = pbk.make_context(pbk.ChainType.REGTEST, validation_callbacks=callbacks)
        options = pbk.ChainstateManagerOptions(
            context, str(folder.absolute()), str((folder / "blocks").absolute())
        )
        options.update_block_tree_db_in_memory(block_tree_db_in_memory=True)
        options.update_chainstate_db_in_memory(chainstate_db_in_memory=True)
        self._manager: pbk.ChainstateManager | None = pbk.ChainstateManager(options)

    def close(self) -> None:
        """Free the engine and its files. Safe to repeat."""
        if self._manager is not None:
            # The manager flushes and joins its threads as it goes, so it goes now and not at some later
            # collection.
            self._manager.__exit__(None, None, None)
            self._manager = None
            shutil.rmtree(self._folder, ignore_errors=True)

    def height(self) -> int:
        """The tip's height; the genesis block is 0."""
        return int(self._open().get_active_chain().height)

    def hash_at(self, height: int) -> bytes:
        """The 32 bytes (wire order) of the active chain's block hash. Raises InvalidBlock outside the
        chain.
        """
        entries = self._open().get_active_chain().block_tree_entries
        if not 0 <= height < len(entries):
            raise InvalidBlock(f"no block at height {height}")
        return bytes(entries[height].block_hash)

    def submit(self, raw: bytes) -> bool:
        """Validate a block and extend the chain with it; False for one it knows already.

        A valid block of a shorter branch is kept and becomes active when its branch outgrows the other.
        Raises InvalidBlock, and the chain is as before.
        """
        import pbk

        manager = self._open()
        if not HEADER_BYTES < len(raw) <= MAX_BLOCK_BYTES:
            raise InvalidBlock("not the size of a block")
        try:
            block = pbk.Block(raw)
        except RuntimeError as error:
            raise InvalidBlock("these bytes are not a block") from error
        if bytes(block) != raw:
            raise InvalidBlock("bytes follow the block")
        parent = struct.unpack_from("<4x32s", raw)[0]
        if pbk.BlockHash(parent) not in manager.block_tree_entries:
            raise InvalidBlock("its parent is unknown")
        self._refused.clear()
        try:
            new = bool(manager.process_block(block))
        except pbk.ProcessBlockException as error:
            reasons = (*self._refused, "the engine refuses its header or shape")
            raise InvalidBlock(reasons[0]) from error
        if self._refused:
            raise InvalidBlock(self._refused[0])
        return new

    def _open(self) -> "pbk.ChainstateManager":
        if self._manager is None:
            raise ChainClosed("The chainstate is closed.")
        return self._manager
