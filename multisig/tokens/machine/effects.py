"""What a transaction changes: single cells of a token's state, each with what it held before, so that any change can be undone.

The bytes of an effect are part of the protocol: the state hash covers them (docs/tokens.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from multisig.hashes import sha256

STATE_DOMAIN: Final = b"cpt-state-1"
GENESIS_STATE: Final = bytes(32)


@unique
class Cell(IntEnum):
    """What a token's state is made of; the value is its byte in an effect and never changes.

    `BALANCE` and `LISTED` are kept for each holder, the others once for each token. What holds nothing is absent.
    """

    DEPLOYED = 0
    """The height of the deployment."""
    BYTECODE = 1
    """The hash that the deployment commits to."""
    OWNER = 2
    STARTED = 3
    """1 once `init` has run."""
    SUPPLY = 4
    """Raw units that exist."""
    PAUSED = 5
    WHITELIST = 6
    """1 while the whitelist is on."""
    LISTED = 7
    BALANCE = 8


# Whole numbers for amounts, heights and flags; bytes for an output script or a hash; None for what is absent.
Value = int | bytes | None


@dataclass(frozen=True, slots=True)
class Effect:
    """One cell of one token changes. `holder` is an output script for `BALANCE` and `LISTED`, else empty."""

    contract_id: str
    cell: Cell
    holder: bytes
    before: Value
    after: Value

    @property
    def undone(self) -> "Effect":
        return Effect(self.contract_id, self.cell, self.holder, self.after, self.before)

    def to_bytes(self) -> bytes:
        """Contract 32 ‖ cell 1 ‖ holder, before and after, each behind its length in one byte; numbers in eight bytes."""
        parts = (self.holder, _bytes(self.before), _bytes(self.after))
        head = bytes.fromhex(self.contract_id) + bytes((self.cell,))
        return head + b"".join(bytes((len(part),)) + part for part in parts)


def _bytes(value: Value) -> bytes:
    if value is None:
        return b""
    return value.to_bytes(8, "big") if isinstance(value, int) else value


def state_hash(previous: bytes, block_hash: bytes, effects: Iterable[Effect]) -> bytes:
    """The hash of the state after a block: `previous` is that after the block before it, at first 32 zero bytes."""
    return sha256(STATE_DOMAIN + previous + block_hash + b"".join(effect.to_bytes() for effect in effects))
