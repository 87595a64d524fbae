"""Text from the platform never moves a terminal's cursor or reorders what is read (L8); the line of a TOML
key.
"""

import pytest

from custody.common.text import LONGEST_TEXT, amount, plain, said
from signerd.core.text import canonical, line_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb\u202ec\u200bd\ne", "a·[2Jb·c·d·e"),
        ("Miete für März — 家賃 🏠", "Miete für März — 家賃 🏠"),
        ("x" * 5_000, "x" * LONGEST_TEXT + "… (cut)"),
    ],
)
def test_what_moves_a_cursor_shows_as_a_dot_and_what_is_long_is_cut(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_each_value_is_written_in_one_way() -> None:
    assert amount(12_345) == "0.00012345 BTC (12,345 sats)"
    assert amount(-1) == "-0.00000001 BTC (-1 sats)"
    assert said(ValueError("no.")) == said(ValueError("no")) == "no."
    assert canonical({"b": 1, "a": ["ü", None]}) == '{"a":["ü",null],"b":1}'.encode()


TEXT = """\
a.b = 1
[c]
# d = 2
d = 3
[c.e]   # a section
f = 4
["g h".i]
'j' = 5
[[k]]
l = 6
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("a b", 1),
        ("a", 1),
        ("c", 2),
        ("c d", 4),
        ("c d deeper", 4),
        ("c e f", 6),
        ("c e g", 5),
        ("g_h i j", 8),
        ("g_h", 7),
        ("k l", 10),
        ("z", None),
    ],
)
def test_where_a_key_stands(key: str, line: int | None) -> None:
    assert line_of(TEXT, tuple(part.replace("_", " ") for part in key.split())) == line


def test_what_no_parser_takes_is_no_key() -> None:
    assert line_of('["\\q"]\n"\\q" = 1\n', ("q",)) is None
