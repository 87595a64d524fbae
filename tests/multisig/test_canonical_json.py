"""Canonical JSON against RFC 8785's published vectors, and against itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.canonical_json import MAX_DEPTH, MAX_INTEGER, JsonError, canonical_json, parse_canonical
from tests.support.vectors import own

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("vector", own("tokens/jcs.json"))
def test_published_vectors(vector):
    expected = bytes.fromhex(vector["output_hex"])
    assert canonical_json(json.loads(vector["input"])) == expected
    assert parse_canonical(expected) == json.loads(vector["input"])


@given(VALUES)
def test_round_trip(value):
    text = canonical_json(value)
    assert parse_canonical(text) == value
    assert json.loads(text) == value


@given(VALUES)
def test_any_other_spelling_is_refused(value):
    canonical = canonical_json(value)
    for spelling in (json.dumps(value), json.dumps(value, indent=1), json.dumps(value) + " "):
        if spelling.encode() != canonical:
            with pytest.raises(JsonError):
                parse_canonical(spelling.encode())


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0019eE.-+ntrfalse ', max_size=40).map(str.encode))
def test_anything_is_canonical_or_refused(data):
    try:
        value = parse_canonical(data)
    except JsonError:
        return
    assert canonical_json(value) == data


def test_names_of_the_rfc_are_in_its_order():
    """RFC 8785, section 3.2.3: its own example of sorting."""
    names = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(names))) == ordered


@pytest.mark.parametrize(
    ("character", "written"),
    [("\x00", r"\u0000"), ("\b", r"\b"), ("\t", r"\t"), ("\n", r"\n"), ("\x0b", r"\u000b"), ("\f", r"\f"),
     ("\r", r"\r"), ("\x1f", r"\u001f"), (" ", " "), ('"', r"\""), ("/", "/"), ("\\", r"\\"),
     ("\x7f", "\x7f"), ("\u2028", "\u2028"), ("é", "é")],
)  # fmt: skip
def test_escapes(character, written):
    assert canonical_json(character) == f'"{written}"'.encode()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (1.0, "not hashed"),
        (b"x", "not hashed"),
        ((1,), "not hashed"),
        ({"a": {1, 2}}, "not hashed"),
        ({1: 2}, "name is not a string"),
        ({None: 2}, "name is not a string"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        (MAX_INTEGER + 1, "beyond"),
        (-MAX_INTEGER - 1, "beyond"),
    ],
)
def test_what_has_no_canonical_form(value, says):
    with pytest.raises(JsonError, match=says):
        canonical_json(value)


def test_true_is_not_one():
    assert canonical_json([True, 1, False, 0, None]) == b"[true,1,false,0,null]"


@pytest.mark.parametrize("depth", [MAX_DEPTH, 500, 100_000])
def test_depth_is_bounded(depth):
    fits = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert canonical_json(parse_canonical(fits)) == fits
    with pytest.raises(JsonError, match="nested too deeply"):
        parse_canonical(b"[" * (depth + 1) + b"]" * (depth + 1))
