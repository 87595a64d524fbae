"""Where stored rows become the entries of a list: one that cannot be shown is shown as that (P102)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import structlog
from pydantic import BaseModel
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.schemas.common import Label, NullInt64, NullString, NullTime, Unreadable
from custody.server.errors import NotFound
from custody.server.store.store import going_on
from multisig import MultisigError

log = structlog.get_logger()

Row = TypeVar("Row")
Answer = TypeVar("Answer")
Record = TypeVar("Record", bound=BaseModel)

# What reading a value raises that no program of ours has stored. A refusal, or the database's own failure, is
# no such thing.
_ALTERED: Final = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, MultisigError,
)  # fmt: skip
_TEXTS: Final = frozenset({str, Label | None})
WHY: Final = (
    "What is stored of it cannot be read: it was altered outside the platform, or the platform has a fault. "
    "Tell the platform's operator, who runs custody audit verify and compares a backup."
)


def shown(
    rows: Sequence[Row],
    records: Callable[[Sequence[Row]], Sequence[Answer]],
    id_field: str,
    id_of: Callable[[Row], str | int],
) -> list[Answer | Unreadable]:
    """An answer for each row, in the order of the rows. ``id_field``: under which name its id is answered.

    ``records`` is asked for all of them at once; where that fails, for each half, down to the rows at fault.
    """
    try:
        return list(records(rows))
    except _ALTERED as error:
        if len(rows) > 1:
            half = len(rows) // 2
            return [
                *shown(rows[:half], records, id_field, id_of),
                *shown(rows[half:], records, id_field, id_of),
            ]
        if not rows:
            raise
        log.warning("a stored row cannot be shown", row=f"{id_field} {id_of(rows[0])}", exc_info=error)
        return [Unreadable.model_validate({id_field: id_of(rows[0]), "unreadable": WHY})]


def shape_of(shape: type[Record], row: object, **others: Any) -> Record:
    """The answer with the row's columns under the same names, nullable ones in the specification's wrappers,
    and ids that are numbers as text where it has text. ``others``: the fields that the row has no column for,
    or that differ from it.
    """
    columns = {}
    for name in shape.model_fields.keys() - others.keys():
        if hasattr(row, name):
            wrapper, value = shape.model_fields[name].annotation, getattr(row, name)
            if isinstance(value, int) and wrapper in _TEXTS:
                value = str(value)
            columns[name] = wrapper.of(value) if wrapper in {NullInt64, NullString, NullTime} else value
    return shape.model_validate(columns | others)


def newest_first(
    db: Session, row: Any, mine: ColumnElement[bool], after: str | None, limit: int
) -> tuple[list[Any], int, bool]:
    """The rows after that one, how many of ``mine`` there are, and whether there are more than these. Raises
    NotFound where ``after`` is not one of ``mine``.
    """
    wanted, place = select(row).where(mine), None
    if after is not None:
        last = db.scalars(wanted.where(row.id == after)).one_or_none()
        if last is None:
            raise NotFound("There is nothing of yours with the id that the list is to go on after.")
        place = last.created_at, last.id
    rows = db.scalars(going_on(wanted, (row.created_at, row.id), place, newest=True).limit(limit + 1)).all()
    total = len(rows)
    if after is not None or total > limit:
        total = db.scalar(select(func.count()).select_from(row).where(mine)) or 0
    return list(rows[:limit]), total, len(rows) > limit


def apart(answers: Sequence[Answer | Unreadable]) -> tuple[list[Answer], list[Unreadable]]:
    """For a page whose shape has a field for each."""
    unreadable = [each for each in answers if isinstance(each, Unreadable)]
    return [each for each in answers if not isinstance(each, Unreadable)], unreadable
