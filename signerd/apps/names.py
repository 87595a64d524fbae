"""What an app may call itself, so that the person sees what is there (L8)."""

import unicodedata

from signerd.callers import PAGE, TERMINAL
from signerd.core.text import plain
from signerd.errors import InvalidRequest

# As much as stands on a line beside what it asks for.
LONGEST_NAME = 40
# The person is told who brought a payment by this name alone.
OURS = frozenset({TERMINAL.name, PAGE.name, "signerd"})
# Letters, symbols and marks that show nothing: fillers of Hangul, Khmer and Braille, and what only varies a glyph before it.
_UNSEEN = frozenset(
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f" + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def folded(name: str) -> str:
    """Equal for names that differ in their capitals alone: caseless matching of Unicode, after NFKC."""
    return unicodedata.normalize("NFKC", name.casefold())


def clean_name(text: str) -> str:
    """The name in one spelling (NFKC), with single spaces.

    Raises:
        InvalidRequest: hidden characters, no letter or digit, a name of ours, or more than ``LONGEST_NAME`` characters.
    """
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if plain(name) != name or not _UNSEEN.isdisjoint(text) or not _UNSEEN.isdisjoint(name):
        raise InvalidRequest("an app's name may have no characters that cannot be seen")
    if not any(char.isalnum() for char in name):
        raise InvalidRequest("an app's name needs a letter or a digit")
    if folded(name) in OURS:
        raise InvalidRequest(f"'{name}' is what signerd calls the person's own doing")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"an app's name may have {LONGEST_NAME} characters at most")
    return name
