"""A list of the platform's, entry by entry: one that cannot be taken is left out by its name, and hides no other.

The client reads a list whole or not at all. That is tried first; where it says that an answer makes no sense, the same list
is asked for once more and read one by one, so that a platform that is newer than this signerd, or has one bad record,
does not silence all that it has.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.client.flow import Core, Plan, call, read
from signerd.account.wire import known_id
from signerd.core.text import plain, said
from signerd.errors import PlatformAnswersWrongly

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
_ENTRIES = TypeAdapter(list[Any])


@dataclass(frozen=True)
class Unreadable:
    """An entry that is left out: ``name`` is its id, or its place where it has none."""

    name: str
    why: str


@dataclass(frozen=True)
class Listed(Generic[T]):
    items: tuple[T, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True)
class Entries:
    """As they came: anything that JSON can say."""

    items: tuple[object, ...]
    etag: str | None


def entries(core: Core, path: str, query: dict[str, Any]) -> Plan[Entries]:
    """A list that is not looked into. Raises what the client raises; BadAnswer where it is no list."""
    response = yield from call(core, core.build("GET", path, query=query), repeatable=True)
    found = read(response, _ENTRIES)
    return Entries(tuple(found), response.headers.get("etag"))


def taken(shapes: Iterable[tuple[str, S]], make: Callable[[S], T]) -> Listed[T]:
    """``make`` of each (name, shape); left out where it says that the platform answers wrongly."""
    items, unreadable = [], []
    for number, (name, shape) in enumerate(shapes, start=1):
        try:
            items.append(make(shape))
        except PlatformAnswersWrongly as error:
            unreadable.append(Unreadable(_name(name, number), said(error)))
    return Listed(tuple(items), tuple(unreadable))


def read_each(found: Iterable[object], id_of: str, shape: type[S], make: Callable[[S], T]) -> Listed[T]:
    """The same of entries as they came; left out where they are not of the shape, too."""
    items, unreadable = [], []
    for number, entry in enumerate(found, start=1):
        try:
            # As JSON again: what counts as a text or a number is the same as where the list is read whole.
            items.append(make(shape.model_validate_json(json.dumps(entry))))
        except (ValidationError, PlatformAnswersWrongly) as error:
            name = entry.get(id_of) if isinstance(entry, dict) else None
            unreadable.append(Unreadable(_name(name, number), _why(error)))
    return Listed(tuple(items), tuple(unreadable))


def last_id(found: Iterable[object], id_of: str) -> str | None:
    """The id of the last entry that has one."""
    names = [_id(entry.get(id_of)) for entry in found if isinstance(entry, dict)]
    return next((name for name in reversed(names) if name is not None), None)


def _name(name: object, number: int) -> str:
    return _id(name) or f"entry {number}"


def _id(name: object) -> str | None:
    try:
        return known_id(name) if isinstance(name, str) else None
    except PlatformAnswersWrongly:
        return None


def _why(error: ValidationError | PlatformAnswersWrongly) -> str:
    if isinstance(error, PlatformAnswersWrongly):
        return said(error)
    first = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(str(part) for part in first["loc"])
    return plain(f"{place or 'the entry'}: {first['msg']}.")
