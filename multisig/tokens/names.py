"""Valid names, tickers and icons of tokens.

Whether a token's bytecode is valid decides balances, so two machines must never disagree about it. Python
3.11 and 3.12 have different Unicode tables: these rules have their own and do not use `unicodedata`. Names
that look alike are allowed: a token is identified by its contract, never by its name.
"""

import re

from multisig.errors import InvalidToken

# As on exchanges; Counterparty and Runes take capital letters only too. Never a digit first: it follows an
# amount.
MAX_TICKER_CHARACTERS = 12
_TICKER = re.compile(r"[A-Z][A-Z0-9]{0,11}", re.ASCII)

MAX_NAME_CHARACTERS = 64

# An icon is named and never fetched by this package (P44): a reference that cannot run anything in a page.
MAX_ICON_CHARACTERS = 512
_ICON = re.compile(r"(?:https|ipfs)://[!#-;=?-\[\]_a-z~]+", re.ASCII)

# First and last code points of what cannot be seen, moves other text, or is no character: controls, spaces
# other than U+0020, bidirectional and other format characters, default ignorable ones (Unicode's
# DerivedCoreProperties), variation selectors, surrogates, private use, tags. Noncharacters at the end of each
# plane are refused beside it.
_HIDDEN = (
    (0x0000, 0x001F),
    (0x007F, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1345F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0x10FFFF),
)


def check_ticker(ticker: str) -> None:
    """1 to 12 of A-Z and 0-9, a letter first. Raises InvalidToken, which never repeats what it refuses."""
    if not isinstance(ticker, str) or _TICKER.fullmatch(ticker) is None:
        raise InvalidToken(
            f"The ticker is not 1 to {MAX_TICKER_CHARACTERS} capital letters and digits, a letter first."
        )


def check_name(name: str) -> None:
    """1 to 64 visible characters, single spaces between them. Raises InvalidToken."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidToken(f"The name has not 1 to {MAX_NAME_CHARACTERS} characters.")
    if any(_is_hidden(ord(character)) for character in name):
        raise InvalidToken("The name holds a character that cannot be seen or that moves other text.")
    if name != " ".join(name.split()):
        raise InvalidToken("The name begins or ends with a space, or has two in a row.")


def check_icon(icon: str) -> None:
    """Empty for none, or an https or ipfs address of plain ASCII. Raises InvalidToken."""
    if not isinstance(icon, str) or len(icon) > MAX_ICON_CHARACTERS:
        raise InvalidToken(f"The icon's address has more than {MAX_ICON_CHARACTERS} characters.")
    if icon and _ICON.fullmatch(icon) is None:
        raise InvalidToken("The icon is not an https or ipfs address of plain characters.")


def _is_hidden(code: int) -> bool:
    return code & 0xFFFE == 0xFFFE or any(first <= code <= last for first, last in _HIDDEN)
