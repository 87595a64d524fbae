"""S31: what a reader cannot see makes no name and no other payee, at any door, for every code point.

The oracle is the engine of regular expressions below pydantic (Rust's, with Unicode tables of its own).
"""

import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import StringConstraints, TypeAdapter, ValidationError

from custody.common.recipients import reads_as_address, typed_address
from custody.common.text import UNSEEN, name_key, plain, without_unseen
from custody.schemas.common import EmailAddress, Line, Name
from custody.server.address_book import require_name
from custody.server.errors import CustodyError
from multisig import InvalidToken, Network, encode_address
from multisig.tokens.values import check_name
from signerd.account.config import load_config
from signerd.apps.names import clean_name
from signerd.errors import SignerdError
from tests.support.examples import IS_FULL, RUN
from tests.support.wallets import foreign_script

# Blank or zero-width by the code charts, though letters, marks and symbols by their category.
BLANKS = "\u2800\U00016fe4\U00013441\U00013442\U0001d159"
CLASS = r"\p{DI}\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Noncharacter_Code_Point}"
ORACLE = TypeAdapter(Annotated[str, StringConstraints(pattern=f"^[{CLASS}{BLANKS}]$")])
ADDRESS = str(encode_address(foreign_script("shop"), Network.REGTEST))


def holds(door: Callable[[str], object], text: str) -> bool:
    try:
        door(text)
    except (ValidationError, CustodyError, SignerdError, InvalidToken, ValueError):
        return False
    return True


def characters() -> Iterator[str]:
    """All of Unicode; in a fast run each seventh of it, and the first page whole."""
    surrogates, first = range(0xD800, 0xE000), range(0x300)
    step, begin = (1, 0) if IS_FULL else (7, random.Random(RUN).randrange(7))
    codes = (*first, *range(first.stop + begin, sys.maxunicode + 1, step))
    return (chr(code) for code in codes if code not in surrogates)


@cache
def unseen() -> frozenset[str]:
    return frozenset(filter(lambda char: holds(ORACLE.validate_python, char), characters()))


@cache
def drawn() -> list[str]:
    """Of the private use of planes 15 and 16 the ends: all else there is as they are."""
    return sorted(char for char in unseen() if not "\U000f0002" < char < "\U000ffff0" and char < "\U00100010")


NAME, LINE, EMAIL = (TypeAdapter(kind).validate_python for kind in (Name, Line, EmailAddress))


def test_the_table_is_unicodes() -> None:
    assert {char for char in characters() if UNSEEN.fullmatch(char)} == unseen()
    assert all(UNSEEN.fullmatch(chr(code)) for code in range(0xD800, 0xE000))


def test_every_name_that_a_reader_cannot_see_whole_is_refused_at_every_door() -> None:
    doors = (NAME, LINE, require_name, clean_name, check_name)
    taken = [
        (door, ascii(text))
        for char in drawn()
        for text in (f"Ac{char}me", f"Acme {char}{char}x")
        for door in doors
        if not (char.isspace() and door is clean_name) and holds(door, text)
    ]
    assert taken == []
    assert [ascii(char) for char in drawn() if holds(EMAIL, f"a{char}b@example.org")] == []


def test_every_other_character_may_stand_in_a_name() -> None:
    """Spaces at the ends are cut off, so it stands within."""
    seen = (char for char in characters() if char not in unseen())
    assert [ascii(char) for char in seen if not holds(NAME, f"a{char}b")] == []
    assert NAME("  O'Neill & Söhne\n") == "O'Neill & Söhne"
    assert [holds(NAME, text) for text in ("x" * 100, "x" * 101, "  ", "")] == [True, False, False, False]


def test_a_name_in_the_signers_own_address_book_is_seen_whole(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    head = 'network = "regtest"\nplatform.url = "https://custody.example"\n'

    def door(text: str) -> None:
        quoted = "".join(f"\\U{ord(char):08x}" for char in text)
        config.write_text(f'{head}[addresses]\n"{quoted}" = "{ADDRESS}"\n', encoding="utf-8")
        load_config(config)

    assert holds(door, "Acme")
    few = "[\ue010-\uf8f0\U000e0200-\U000e0ff0]"
    sample = [char for char in drawn() if not re.match(few, char)]
    assert [ascii(char) for char in sample if holds(door, f"Ac{char}me")] == []


def test_an_address_with_what_cannot_be_seen_is_never_a_name() -> None:
    """It reads as that address."""
    for char in drawn():
        for text in (f"{ADDRESS}{char}", f"{char}{ADDRESS}", f"{ADDRESS[:9]}{char}{ADDRESS[9:]}"):
            assert typed_address(text) == ADDRESS, ascii(char)
            assert not holds(require_name, text), ascii(char)
    assert reads_as_address("\u034f" + ADDRESS[:-1])
    assert typed_address(f"bitcoin:\u2060{ADDRESS}") == f"bitcoin:{ADDRESS}"


def test_names_that_look_the_same_are_the_same() -> None:
    for char in drawn():
        # What breaks a line is a blank to a reader.
        assert name_key(f"Ac{char}me").replace(" ", "") == "acme", ascii(char)
        assert name_key(f"A{char}\u030a") == name_key("\u00c5"), ascii(char)


def test_a_key_is_a_name_of_its_own_key() -> None:
    keys = ((char, name_key(f"a{char}b")) for char in characters())
    assert [ascii(char) for char, key in keys if name_key(key) != key] == []


def test_what_is_stored_is_shown_with_a_dot_for_each() -> None:
    assert plain("".join(drawn()[:500])) == "·" * 500
    assert without_unseen("".join(drawn())) == ""


@pytest.mark.parametrize(
    ("text", "code_point"),
    [
        ("Acme\u034f", "U+034F (COMBINING GRAPHEME JOINER)"),
        ("نان\u200cآوران", "U+200C (ZERO WIDTH NON-JOINER)"),
        ("❤\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
        ("a\x07b", "U+0007 (no name)"),
    ],
    ids=ascii,
)  # fmt: skip
def test_the_sentence_names_the_code_point(text: str, code_point: str) -> None:
    """The joiners of Persian and Indic words, and what makes an emoji of a heart, are refused, too."""
    for door in (NAME, clean_name):
        with pytest.raises((ValidationError, SignerdError)) as caught:
            door(text)
        assert code_point in str(caught.value)
