"""The second reader: embit must read our bytes as the same transaction.

No value is taken from embit 0.8.0. It is an independent parser, much like those in wallets and devices: a
PSBT that it parses differently is one that another wallet could show differently. It gets our own
serialisation of known fields, never bytes from outside: those may hold taproot fields whose counts it does
not bound, and version 2 fields that it lets replace the transaction.
"""

from typing import TYPE_CHECKING

from multisig.errors import InvalidPsbt
from multisig.transaction import MAX_UINT32, Transaction

if TYPE_CHECKING:
    from embit.psbt import PSBT


def require_same_reading(data: bytes, tx: Transaction) -> None:
    """Raises InvalidPsbt unless embit parses the bytes, and sees this unsigned transaction in them."""
    # Imported with the first PSBT: it loads another curve library, a megabyte in an idle daemon.
    from embit.psbt import PSBT

    try:
        seen = PSBT.parse(data)
        same = _transaction_fields(seen) == _our_fields(tx)
    # embit raises six kinds of exception, none of them documented.
    except Exception as error:
        raise InvalidPsbt("A field of the PSBT is malformed.") from error
    if not same:
        raise InvalidPsbt("Two readers see different transactions in the PSBT.")


def _transaction_fields(seen: "PSBT") -> tuple[object, ...]:
    return (
        seen.tx_version,
        seen.locktime,
        [(item.txid.hex(), item.vout, item.sequence) for item in seen.inputs],
        [(output.value, output.script_pubkey.data) for output in seen.outputs],
    )


def _our_fields(tx: Transaction) -> tuple[object, ...]:
    return (
        tx.version,
        tx.locktime,
        # It reads a sequence of zero as one that is absent, and that as the highest.
        [(item.outpoint.txid, item.outpoint.vout, item.sequence or MAX_UINT32) for item in tx.inputs],
        [(output.amount, output.script_pubkey) for output in tx.outputs],
    )
