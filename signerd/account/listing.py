"""A list of the platform's, entry by entry: one that cannot be taken is left out by its name, and hides no other.

A platform that is newer than this signerd, or has one bad record, does not silence all that it has. A list is read up to a
bound, and so are its pages.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from custody.client import BadAnswer
from custody.client.flow import Core, call
from custody.exchange import Plan, Reply, Request
from signerd.account.wire import known_id
from signerd.core.text import plain, said
from signerd.errors import PlatformAnswersWrongly

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
_log = logging.getLogger(__name__)

# Entries of one list. A workspace has a hundred vaults and a thousand pending proposals at most; the oldest come first.
MOST_LISTED = 2_000
# No number of 64 bits has more characters, and Python refuses to read one of thousands of digits.
_LONGEST_NUMBER = 25
UNFORESEEN = "taking it failed in a way that nobody foresaw: signerd's own messages say how."


@dataclass(frozen=True)
class Unreadable:
    """An entry that is left out: ``name`` is its id, or its place where it has none."""

    name: str
    why: str


@dataclass(frozen=True)
class Listed(Generic[T]):
    items: tuple[T, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def __add__(self, other: "Listed[T]") -> "Listed[T]":
        return Listed((*self.items, *other.items), (*self.unreadable, *other.unreadable))


TOO_LONG = Unreadable("the rest", f"the list has more than {MOST_LISTED:,} entries, and is read so far.")


@dataclass(frozen=True)
class Entries:
    """As they came: anything that JSON can say. ``size``: bytes of the answer."""

    items: tuple[object, ...]
    etag: str | None
    size: int


def entries(core: Core, request: Request) -> Plan[Entries | None]:
    """A list that is not looked into; None where it is still the one of the request's ``If-None-Match``.

    Raises what the client raises; BadAnswer where it is no list.
    """
    reply = yield from call(core, request, repeatable=True)
    etag = reply.headers.get("etag", request.headers.get("If-None-Match"))
    if reply.status == HTTPStatus.NOT_MODIFIED:
        return None
    found = loosely(reply)
    if not isinstance(found, list):
        raise BadAnswer(f"{request.path}: the body is no list")
    return Entries(tuple(found), etag, len(reply.content))


def loosely(reply: Reply) -> Any:
    """The JSON of an answer, whatever stands in it. Raises BadAnswer where it is none.

    Half a character and a number of a thousand digits are some entry's fault, and not the list's.
    """
    try:
        return json.loads(reply.content, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"{reply.path}: no JSON ({type(error).__name__})") from None


def _whole(text: str) -> int | float:
    """What is longer than any field takes is a number that none takes."""
    return int(text) if len(text) <= _LONGEST_NUMBER else float("inf")


def read_each(
    found: Iterable[object], id_of: str, shape: type[S], make: Callable[[S], T], *, before: int = 0
) -> Listed[T]:
    """``make`` of each entry; left out where it is not of the shape, or where taking it fails in any way.

    ``before``: how many came before these, for the name of one without an id.
    """
    items, unreadable = [], []
    for number, entry in enumerate(found, start=before + 1):
        try:
            # As JSON again: what counts as a text or a number is the same as where the client reads it.
            items.append(make(shape.model_validate_json(json.dumps(entry))))
        except Exception as error:  # noqa: BLE001 - whatever one entry makes of us, the others go on
            name = entry.get(id_of) if isinstance(entry, dict) else None
            unreadable.append(Unreadable(_id(name) or f"entry {number}", _why(error)))
    return Listed(tuple(items), tuple(unreadable))


def last_id(found: Iterable[object], id_of: str) -> str | None:
    """The id of the last entry that has one."""
    names = [_id(entry.get(id_of)) for entry in found if isinstance(entry, dict)]
    return next((name for name in reversed(names) if name is not None), None)


def _id(name: object) -> str | None:
    try:
        return known_id(name) if isinstance(name, str) else None
    except PlatformAnswersWrongly:
        return None


def _why(error: Exception) -> str:
    if isinstance(error, PlatformAnswersWrongly):
        return said(error)
    if not isinstance(error, ValidationError):
        _log.error("an entry of the platform's could not be taken", exc_info=error)
        return UNFORESEEN
    first = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(str(part) for part in first["loc"])
    return plain(f"{place or 'the entry'}: {first['msg']}.")
