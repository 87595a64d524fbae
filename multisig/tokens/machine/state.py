"""The state of all tokens as cells: read by the rules, kept in memory here, or in rows by an indexer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final, Protocol

from multisig.hashes import sha256

STATE_DOMAIN: Final = b"cpt-state-1"
GENESIS_STATE: Final = bytes(32)


@unique
class Cell(IntEnum):
    """What a token's state is made of; the value is its byte in an effect and never changes.

    `BALANCE` and `LISTED` are kept for each holder, the others once for each token. What holds nothing is
    absent.
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
        """Contract 32 ‖ cell 1 ‖ holder, before and after, each behind its length in one byte; numbers in
        eight bytes.
        """
        parts = (self.holder, _bytes(self.before), _bytes(self.after))
        head = bytes.fromhex(self.contract_id) + bytes((self.cell,))
        return head + b"".join(bytes((len(part),)) + part for part in parts)


def _bytes(value: Value) -> bytes:
    if value is None:
        return b""
    return value.to_bytes(8, "big") if isinstance(value, int) else value


def state_hash(previous: bytes, block_hash: bytes, effects: Iterable[Effect]) -> bytes:
    """The hash of the state after a block: `previous` is that after the block before it, at first 32 zero
    bytes.
    """
    return sha256(STATE_DOMAIN + previous + block_hash + b"".join(effect.to_bytes() for effect in effects))


Key = tuple[str, Cell, bytes]


class StateView(Protocol):
    """The state as the rules read it."""

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        """What the cell holds; None where it is absent."""
        ...


@dataclass(slots=True)
class TokenCells:
    """Every cell in memory."""

    cells: dict[Key, int | bytes] = field(default_factory=dict)

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        return self.cells.get((contract_id, cell, holder))

    def apply(self, effects: Iterable[Effect]) -> None:
        """In their order. Raises AssertionError where an effect was made of another state: a bug of the
        caller's.
        """
        for effect in effects:
            key = (effect.contract_id, effect.cell, effect.holder)
            assert self.cells.get(key) == effect.before, f"{effect.cell.name} is not as it was"
            if effect.after is None:
                self.cells.pop(key, None)
            else:
                self.cells[key] = effect.after


@dataclass(slots=True)
class Overlay:
    """The effects of a block while it is judged, over the state before it."""

    below: StateView
    effects: list[Effect] = field(default_factory=list)
    _changed: dict[Key, Value] = field(default_factory=dict)

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        key = (contract_id, cell, holder)
        return self._changed[key] if key in self._changed else self.below.get(contract_id, cell, holder)

    def apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._changed[effect.contract_id, effect.cell, effect.holder] = effect.after
            self.effects.append(effect)


@dataclass(slots=True)
class Writer:
    """Gathers what one transaction changes. A cell that ends as it began leaves no effect."""

    view: StateView
    contract_id: str
    _before: dict[tuple[Cell, bytes], Value] = field(default_factory=dict)
    _after: dict[tuple[Cell, bytes], Value] = field(default_factory=dict)

    def get(self, cell: Cell, holder: bytes = b"") -> Value:
        key = (cell, holder)
        return self._after[key] if key in self._after else self.view.get(self.contract_id, cell, holder)

    def number(self, cell: Cell, holder: bytes = b"") -> int:
        """An absent number is 0."""
        value = self.get(cell, holder)
        assert value is None or isinstance(value, int)
        return value or 0

    def set(self, cell: Cell, value: Value, holder: bytes = b"") -> None:
        """Zero is kept as absence: one state, one form."""
        key = (cell, holder)
        if key not in self._before:
            self._before[key] = self.view.get(self.contract_id, cell, holder)
        self._after[key] = value or None if isinstance(value, int) else value

    def effects(self) -> Iterator[Effect]:
        """In the order of the cells and of the holders' bytes, independent of the order of writes."""
        for cell, holder in sorted(self._after):
            before, after = self._before[cell, holder], self._after[cell, holder]
            if before != after:
                yield Effect(self.contract_id, cell, holder, before, after)
