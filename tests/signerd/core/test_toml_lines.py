"""The line of a key, for messages about a file."""

import pytest

from signerd.core.text import line_of

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
