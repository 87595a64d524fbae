"""Canonical JSON (RFC 8785) of what we hash: objects, arrays, strings, true, false, null, and whole numbers.

RFC 8785 writes numbers as IEEE 754 doubles. A whole number within 2^53 - 1 is written the same by everybody, which
is why others are refused here: larger ones travel as strings.
"""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | bool | None

# RFC 7493 (I-JSON), section 2.2: beyond it a double no longer tells neighbours apart.
MAX_INTEGER = 2**53 - 1
# Far more than anything hashed here has; without it a hostile text would end in a RecursionError.
MAX_DEPTH = 32

# RFC 8785, section 3.2.2.2: two characters where JSON has them, four lower-case hex digits for other controls.
_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)} | {
    ord("\b"): "\\b",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\f"): "\\f",
    ord("\r"): "\\r",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


class JsonError(ValueError):
    """What has no canonical form, or is not in it. Callers turn it into their own error."""


def canonical_json(value: JsonValue) -> bytes:
    """The one spelling of a value, in UTF-8. Raises JsonError."""
    return "".join(_write(value, MAX_DEPTH)).encode("utf-8")


def parse_canonical(data: bytes) -> JsonValue:
    """The value of a text that is canonical already. Raises JsonError for any other text, well formed or not."""
    value = _parse(data)
    if canonical_json(value) != data:
        raise JsonError("it is not in canonical form")
    return value


def _parse(data: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_no_number,
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


def _write(value: JsonValue, depth: int) -> Iterator[str]:
    if not depth:
        raise JsonError("it is nested too deeply")
    if isinstance(value, dict):
        yield from _members(value, depth)
    elif isinstance(value, list):
        yield from _items(value, depth)
    elif isinstance(value, str):
        yield _string(value)
    else:
        yield _literal(value)


def _members(value: dict[str, JsonValue], depth: int) -> Iterator[str]:
    yield "{"
    for number, name in enumerate(sorted(value, key=_utf16)):
        yield "," if number else ""
        yield _string(name) + ":"
        yield from _write(value[name], depth - 1)
    yield "}"


def _items(value: list[JsonValue], depth: int) -> Iterator[str]:
    yield "["
    for number, item in enumerate(value):
        yield "," if number else ""
        yield from _write(item, depth - 1)
    yield "]"


def _utf16(name: str) -> bytes:
    # Section 3.2.3: names are sorted by UTF-16 code units, which differs from code points above U+FFFF.
    if not isinstance(name, str):
        raise JsonError("a name is not a string")
    return name.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise JsonError("a string holds half a surrogate pair")
    return f'"{text.translate(_ESCAPES)}"'


def _literal(value: Any) -> str:
    # By identity: 1 and True are equal in Python, and not in JSON.
    for known, text in ((None, "null"), (True, "true"), (False, "false")):
        if value is known:
            return text
    if not isinstance(value, int):
        raise JsonError("a value is of a type that is not hashed")
    if abs(value) > MAX_INTEGER:
        raise JsonError("a number is beyond 2^53 - 1")
    return str(value)
