"""Names: any text without line breaks or direction marks."""

import pytest
from pydantic import TypeAdapter, ValidationError

from custody.schemas.common import Name

NAME = TypeAdapter(Name)


@pytest.mark.parametrize("text", ["Ana", "O'Neill & Söhne", "=1+1", "<b>", "株式会社", "👩🚀", "x" * 100])
def test_is_kept_as_it_was_written(text: str) -> None:
    assert NAME.validate_python(text) == text


def test_loses_the_blanks_around_it() -> None:
    assert NAME.validate_python("  Ana\n") == "Ana"


@pytest.mark.parametrize(
    "text",
    ["", "  ", "x" * 101, "a\nb", "a\r\nBcc: x", "a\tb", "a\x00b", "a\x1b[2Jb", "a\x7fb", "a\x85b",
     "a\u2028b", "a\u202eb", "a\u2066b"],
)  # fmt: skip
def test_never_leaves_its_line(text: str) -> None:
    """P50: no second header, no second log line, no cursor moved, nothing written backwards."""
    with pytest.raises(ValidationError):
        NAME.validate_python(text)
