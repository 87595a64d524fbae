"""Text from the platform never moves a terminal's cursor or reorders what is read (L8); the line of a TOML
key.
"""

import pytest

from signerd.core.text import LONGEST_TEXT, amount, canonical, line_of, plain, said


def test_control_and_direction_characters_show_as_a_dot() -> None:
    assert plain("a\x1b[2Jb\u202ec\u200bd\ne") == "a·[2Jb·c·d·e"


def test_ordinary_words_of_any_script_stay() -> None:
    assert plain("Miete für März — 家賃 🏠") == "Miete für März — 家賃 🏠"


def test_long_text_is_cut_and_says_so() -> None:
    assert plain("x" * 5_000) == "x" * LONGEST_TEXT + "… (cut)"


def test_amounts_show_both_units() -> None:
    assert amount(12_345) == "0.00012345 BTC (12,345 sats)"
    assert amount(2_100_000_000_000_001) == "21000000.00000001 BTC (2,100,000,000,000,001 sats)"
    assert amount(-1) == "-0.00000001 BTC (-1 sats)"


def test_a_sentence_ends_in_one_full_stop() -> None:
    assert said(ValueError("no.")) == said(ValueError("no")) == "no."


def test_one_spelling_per_value() -> None:
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
        (("a", "b"), 1),
        (("a",), 1),
        (("c",), 2),
        (("c", "d"), 4),
        (("c", "d", "deeper"), 4),
        (("c", "e", "f"), 6),
        (("c", "e", "g"), 5),
        (("g h", "i", "j"), 8),
        (("g h", "i"), 7),
        (("g h",), 7),
        (("k", "l"), 10),
        (("z",), None),
    ],
)
def test_where_a_key_stands(key: tuple[str, ...], line: int | None) -> None:
    assert line_of(TEXT, key) == line


def test_what_no_parser_takes_is_no_key() -> None:
    assert line_of('["\\q"]\n"\\q" = 1\n', ("q",)) is None
