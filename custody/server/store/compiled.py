"""A statement of SQLAlchemy's as a database's driver takes it: its SQL, and how its values are given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import iterate

Values = Mapping[str, object]
_Convert = Callable[[Any], Any]
Read = Callable[[Sequence[Sequence[Any]]], list[tuple[Any, ...]]]


class Compiled:
    """A statement for one kind of database, whatever the lengths of its lists."""

    def __init__(self, clause: Any, dialect: Dialect, keys: frozenset[str] = frozenset()) -> None:
        self._sql: SQLCompiler = clause.compile(dialect=_spoken(dialect), column_keys=sorted(keys) or None)
        assert keys.issuperset(column.key for column in self._sql.insert_prefetch), "defaults are given"
        self._dialect = dialect
        binds = {key: self._sql.binds[key] for key in self._sql.bind_names.values()}
        lists = [key for key, bind in binds.items() if bind.expanding]
        self._fixed = {key: bind.value for key, bind in binds.items() if not bind.required}
        self._lists = [key for key in lists if key not in self._fixed]
        self._texts: dict[tuple[int, ...], Text] = {}
        # Without lists there is one.
        self._only = None if self._lists else self._expanded({})

    def text(self, values: Values) -> "Text":
        if self._only is not None:
            return self._only
        lengths = tuple([len(cast("Sequence[object]", values[key])) for key in self._lists])
        known = self._texts.get(lengths)
        if known is not None:
            return known
        given = {key: [None] * length for key, length in zip(self._lists, lengths, strict=True)}
        return self._texts.setdefault(lengths, self._expanded(given))

    def _expanded(self, lists: Mapping[str, Sequence[None]]) -> "Text":
        binds = {key: self._sql.binds[key] for key in self._sql.bind_names.values()}
        state = self._sql.construct_expanded_state({**dict.fromkeys(binds), **self._fixed, **lists})
        members = state.parameter_expansion
        kinds = {name: bind.type for key, bind in binds.items() for name in members.get(key, [key])}
        binders = {
            name: kind.dialect_impl(self._dialect).bind_processor(self._dialect)
            for name, kind in kinds.items()
        }
        fixed = _spread(self._fixed, {key: names for key, names in members.items() if key in self._fixed})
        return Text(
            state.statement,
            [(name, binders[name]) for name in state.positiontup or ()],
            fixed,
            {key: members[key] for key in self._lists},
        )


@dataclass(frozen=True)
class Text:
    """The SQL with the database's own placeholders, and how its values are given: in their order.

    ``fixed`` are the statement's own values, ``members`` the names that stand for each list.
    """

    sql: str
    places: Sequence[tuple[str, _Convert | None]]
    fixed: Values
    members: Mapping[str, Sequence[str]]

    def given(self, values: Values) -> tuple[Any, ...]:
        """A value that is missing is a KeyError."""
        if self.fixed:
            values = {**self.fixed, **values}
        if self.members:
            values = _spread(values, self.members)
        return tuple([values[name] if bind is None else bind(values[name]) for name, bind in self.places])


def _spread(values: Values, members: Mapping[str, Sequence[str]]) -> Values:
    """With each element of a list by its own name."""
    spread = dict(values)
    for key, names in members.items():
        spread |= zip(names, cast("Sequence[object]", values[key]), strict=True)
    return spread


def _spoken(dialect: Dialect) -> Dialect:
    """As the database itself understands it, where the driver has placeholders of its own."""
    if dialect.name != "postgresql":
        return dialect
    kind: Any = type(dialect)
    own: Dialect = kind(paramstyle="numeric_dollar")
    return own


def reader(converts: Sequence[_Convert | None]) -> Read | None:
    """None where every column is as the driver gives it."""
    if not any(converts):
        return None
    return lambda rows: [
        tuple(
            [
                value if convert is None else convert(value)
                for convert, value in zip(converts, row, strict=True)
            ]
        )
        for row in rows
    ]


def tables_of(clause: ClauseElement) -> frozenset[str]:
    """The names of all tables that it speaks of, those of its inner statements too."""
    return frozenset(part.name for part in iterate(clause) if isinstance(part, Table))
