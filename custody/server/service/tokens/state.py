"""The tokens' state in the database as a ``StateView``, read and written once for each batch of blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, delete, insert, select
from sqlalchemy.orm import Session

from custody.server.store.models import Contract, TokenCell
from custody.server.store.models.base import table_of
from multisig.errors import InvalidToken
from multisig.tokens import Bytecode, Call, decode_payload, parse_bytecode
from multisig.tokens.machine import BytecodeOf, Cell, Effect, TokenBlock, Value

Key = tuple[str, Cell, bytes]
G = TypeVar("G")
V = TypeVar("V")
# SQLite takes 32,766 values in one statement (its limits.html), and long lists are no quicker.
VALUES_PER_STATEMENT = 500

_CELLS = table_of(TokenCell)
_C = _CELLS.c
_OF_HOLDER = (int(Cell.LISTED), int(Cell.BALANCE))
_OF_TOKEN = tuple(int(cell) for cell in Cell if int(cell) not in _OF_HOLDER)


class Cells:
    """The state of one chain within one transaction: a caching ``StateView``."""

    def __init__(self, db: Session, chain: str) -> None:
        self._db = db
        self._chain = chain
        self._known: dict[Key, Value] = {}
        self._whole: set[tuple[str, bytes]] = set()
        self._new: set[str] = set()
        self._changed: set[Key] = set()

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        key = (contract_id, cell, holder)
        if key not in self._known:
            if contract_id not in self._new and (contract_id, holder) not in self._whole:
                self._load([(contract_id, holder)])
            self._known.setdefault(key, None)
        return self._known[key]

    def expect(self, blocks: Iterable[TokenBlock]) -> None:
        """Preloads what the transactions of these blocks will read."""
        self._load(sorted({place for block in blocks for place in _places(block)} - self._whole))

    def apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            key = (effect.contract_id, effect.cell, effect.holder)
            self._known[key] = effect.after
            self._changed.add(key)

    def write(self) -> None:
        """Stores what has changed."""
        changed = sorted(self._changed)
        for (contract_id, cell), holders in _grouped(((key[0], key[1]), key[2]) for key in changed):
            where = _C.chain == self._chain, _C.contract_id == contract_id, _C.cell == int(cell)
            self._db.execute(delete(_CELLS).where(*where, _C.holder.in_(holders)))
        rows = [row for key in changed if (row := self._row(key)) is not None]
        if rows:
            self._db.execute(insert(_CELLS), rows)
        self._changed.clear()

    def _load(self, places: Sequence[tuple[str, bytes]]) -> None:
        """Looks rows up by their whole key with lists of single values: for tuples in IN, SQLite would scan
        the table.
        """
        tokens = [contract_id for contract_id, holder in places if not holder]
        for _, some in _grouped(("", contract_id) for contract_id in tokens):
            self._fetch(_C.contract_id.in_(some), _C.cell.in_(_OF_TOKEN), _C.holder == b"")
        # Every deployment stores its hash: a token without one has no rows for holders to look up.
        self._new.update(each for each in tokens if (each, Cell.BYTECODE, b"") not in self._known)
        held = ((contract_id, holder) for contract_id, holder in places if holder)
        for contract_id, holders in _grouped(held):
            self._fetch(_C.contract_id == contract_id, _C.cell.in_(_OF_HOLDER), _C.holder.in_(holders))
        self._whole.update(places)

    def _fetch(self, *where: ColumnElement[bool]) -> None:
        columns = _C.contract_id, _C.cell, _C.holder, _C.number, _C.data
        for contract_id, cell, holder, number, data in self._db.execute(
            select(*columns).where(_C.chain == self._chain, *where)
        ):
            self._known.setdefault((contract_id, Cell(cell), holder), data if number is None else number)

    def _row(self, key: Key) -> dict[str, Any] | None:
        contract_id, cell, holder = key
        value = self._known[key]
        if value is None:
            return None
        number, data = split(value)
        return {
            "chain": self._chain,
            "contract_id": contract_id,
            "cell": int(cell),
            "holder": holder,
            "number": number,
            "data": data,
        }


def split(value: Value) -> tuple[int | None, bytes | None]:
    """The two columns of a value: a number, or data."""
    return (value, None) if isinstance(value, int) else (None, value)


def joined(number: int | None, data: bytes | None) -> Value:
    return data if number is None else number


def _grouped(pairs: Iterable[tuple[G, V]]) -> Iterator[tuple[G, list[V]]]:
    """Consecutive pairs of one group, as many as one statement takes."""
    for group, found in groupby(pairs, key=itemgetter(0)):
        members = [member for _, member in found]
        for start in range(0, len(members), VALUES_PER_STATEMENT):
            yield group, members[start : start + VALUES_PER_STATEMENT]


def _places(block: TokenBlock) -> Iterable[tuple[str, bytes]]:
    for transaction in block.transactions:
        yield transaction.txid, b""
        call = _call(transaction.data)
        if call is not None:
            yield call.contract_id, b""
            yield call.contract_id, transaction.caller
            if call.address is not None:
                yield call.contract_id, call.address


def _call(data: bytes | None) -> Call | None:
    try:
        payload = None if data is None else decode_payload(data)
    except InvalidToken:
        return None
    return payload if isinstance(payload, Call) else None


# Of one chain, within one transaction.
Published = Callable[[Session, str], BytecodeOf]


def published_bytecode(db: Session, chain: str) -> BytecodeOf:
    """Finds the bytecode of tokens that members here made, else None. Answers are cached."""

    @cache
    def find(bytecode_hash: bytes) -> Bytecode | None:
        of_hash = select(Contract.bytecode).where(
            Contract.chain == chain, Contract.bytecode_hash == bytecode_hash
        )
        blob = db.scalar(of_hash.limit(1))
        return None if blob is None else parse_bytecode(blob)

    return find
