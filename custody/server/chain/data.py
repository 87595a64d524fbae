"""The transactions of a block that carry data: found in the bytes of the block, whichever backend brought them."""

from collections.abc import Iterator, Sequence

from multisig.script import parse_op_return
from multisig.transaction import Transaction


def carriers(transactions: Sequence[Transaction], prefix: bytes) -> Iterator[tuple[int, Transaction]]:
    """Those with such data, and their places. The coinbase, which comes first, spends nothing and calls nothing."""
    for position, transaction in enumerate(transactions):
        if position and any(_carries(output.script_pubkey, prefix) for output in transaction.outputs):
            yield position, transaction


def _carries(script: bytes, prefix: bytes) -> bool:
    data = parse_op_return(script)
    return data is not None and data.startswith(prefix)
