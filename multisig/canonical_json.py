"""Canonical JSON (RFC 8785) for hashing: objects, arrays, strings, true, false, null, and whole numbers.

RFC 8785 writes numbers as IEEE 754 doubles. All implementations write a whole number within 2^53 - 1 the same
way, so other numbers are refused here; larger ones travel as strings.
"""

import json
from typing import Any, NoReturn

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | bool | None

# RFC 7493 (I-JSON), section 2.2: a double represents every whole number up to here exactly.
MAX_INTEGER = 2**53 - 1
# Far more than anything hashed here has; without it a hostile text would end in a RecursionError.
MAX_DEPTH = 32

# The C encoder escapes exactly what RFC 8785, section 3.2.2.2, escapes, in the same form. It does not sort
# names as the RFC does, so they are sorted before.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class JsonError(ValueError):
    """A value without a canonical form, or a text that is not in it. The caller raises its own error."""


def canonical_json(value: JsonValue) -> bytes:
    """The one spelling of a value, in UTF-8. Raises JsonError."""
    try:
        return _ENCODER.encode(_ordered(value, MAX_DEPTH)).encode("utf-8")
    except UnicodeEncodeError as error:
        raise JsonError("a string holds half a surrogate pair") from error


def parse_canonical(data: bytes) -> JsonValue:
    """The value of a text that is canonical already. Raises JsonError for any other text, well formed
    or not.
    """
    value = parse_json(data)
    if canonical_json(value) != data:
        raise JsonError("it is not in canonical form")
    return value


def parse_json(data: bytes, *, fractions: bool = False) -> JsonValue:
    """The value of any text of JSON that has no name twice, and no other numbers than whole ones;
    ``fractions``: others are text. Raises JsonError.
    """
    try:
        value: JsonValue = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=str if fractions else _no_number,
            parse_constant=_no_number,
        )
    except JsonError:
        raise
    except RecursionError as error:
        raise JsonError("it is nested too deeply") from error
    except ValueError as error:
        # Also bytes that are not UTF-8, and a number of thousands of digits, which Python does not convert.
        raise JsonError("it is not JSON in UTF-8") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonError("a name is there twice")
    return members


def _no_number(_text: str) -> NoReturn:
    raise JsonError("a number is not a whole number")


def _ordered(value: JsonValue, depth: int) -> JsonValue:
    """The same value with the names of every object in order. Raises JsonError for what has no canonical
    form.
    """
    if not depth:
        raise JsonError("it is nested too deeply")
    if isinstance(value, dict):
        return {name: _ordered(value[name], depth - 1) for name in sorted(value, key=_utf16)}
    if isinstance(value, list):
        return [_ordered(item, depth - 1) for item in value]
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise JsonError("a number is beyond 2^53 - 1")
    if value is not None and not isinstance(value, str | int):
        raise JsonError("a value is of a type that is not hashed")
    return value


def _utf16(name: str) -> bytes:
    # Section 3.2.3: names are sorted by UTF-16 code units, which differs from code points above U+FFFF.
    if not isinstance(name, str):
        raise JsonError("a name is not a string")
    return name.encode("utf-16-be", "surrogatepass")
