"""The tokens' state in the database as a ``StateView``, written once for each batch of blocks."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product

from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.orm import Session

from custody.server.store.models import ContractRow, TokenCellRow
from custody.server.store.models.base import table_of
from multisig.tokens import Bytecode, parse_bytecode
from multisig.tokens.machine import BytecodeOf, Cell, Effect, Value

Key = tuple[str, Cell, bytes]

_CELLS = table_of(TokenCellRow)
_C = _CELLS.c
# Each cell by its key: the index would otherwise be read for all holders.
_OF_TOKEN = (_C.chain == bindparam("chain"), _C.contract_id == bindparam("contract_id"))
_READ = select(_C.cell, _C.holder, _C.number, _C.data).where(
    *_OF_TOKEN,
    _C.cell.in_([int(cell) for cell in Cell]),
    _C.holder.in_(bindparam("holders", expanding=True)),
)
_DELETE = delete(_CELLS).where(*_OF_TOKEN, _C.cell == bindparam("cell"), _C.holder == bindparam("holder"))


class Cells:
    """The state of one chain within one transaction: a ``StateView`` that reads each cell once. ``holders``:
    whose cells are read with the token's own.
    """

    def __init__(self, db: Session, chain: str, holders: Iterable[bytes] = ()) -> None:
        self._db = db
        self._chain = chain
        self._holders = sorted({b"", *holders})
        self._known: dict[Key, Value] = {}
        self._changed: set[Key] = set()

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        """Every deployment stores its hash: of a token without one, which a stranger made, nothing else is
        read.
        """
        key, deployed = (contract_id, cell, holder), (contract_id, Cell.BYTECODE, b"")
        if deployed not in self._known:
            self._read(contract_id, self._holders)
        if key not in self._known and self._known[deployed] is not None:
            self._read(contract_id, [holder])
        return self._known.get(key)

    def _read(self, contract_id: str, holders: Sequence[bytes]) -> None:
        """All cells of these holders at once: most calls need several. Of no holder are the token's own."""
        of = {"chain": self._chain, "contract_id": contract_id, "holders": holders}
        stored = {(cell, holder): joined(*value) for cell, holder, *value in self._db.execute(_READ, of)}
        for cell, holder in product(Cell, holders):
            self._known.setdefault((contract_id, cell, holder), stored.get((int(cell), holder)))

    def apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            key = (effect.contract_id, effect.cell, effect.holder)
            self._known[key] = effect.after
            self._changed.add(key)

    def write(self) -> None:
        """Stores what has changed."""
        places, rows = [], []
        for contract_id, cell, holder in sorted(self._changed):
            place = {"chain": self._chain, "contract_id": contract_id, "cell": int(cell), "holder": holder}
            places.append(place)
            value = self._known[contract_id, cell, holder]
            if value is not None:
                number, data = split(value)
                rows.append(place | {"number": number, "data": data})
        if places:
            self._db.connection().execute(_DELETE, places)
        if rows:
            self._db.execute(insert(_CELLS), rows)
        self._changed.clear()


def split(value: Value) -> tuple[int | None, bytes | None]:
    """The two columns of a value: a number, or data."""
    return (value, None) if isinstance(value, int) else (None, value)


def joined(number: int | None, data: bytes | None) -> Value:
    return data if number is None else number


# Of one chain, within one transaction.
Published = Callable[[Session, str], BytecodeOf]


def published_bytecode(db: Session, chain: str) -> BytecodeOf:
    """Finds the bytecode of tokens that members here made, else None. Answers are cached."""

    @cache
    def find(bytecode_hash: bytes) -> Bytecode | None:
        of_hash = select(ContractRow.bytecode).where(
            ContractRow.chain == chain, ContractRow.bytecode_hash == bytecode_hash
        )
        blob = db.scalar(of_hash.limit(1))
        return None if blob is None else parse_bytecode(blob)

    return find
