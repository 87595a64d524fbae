"""Valid amounts, names, tickers and icons of tokens.

Amounts are in raw units, or of whole tokens; neither is ever a float.

Whether a token's bytecode is valid decides balances, so two machines must never disagree about it. Python
3.11 and 3.12 have different Unicode tables: the rules of names have their own and do not use `unicodedata`.
Names that look alike are allowed: a token is identified by its contract, never by its name.
"""

import re
from typing import NewType

from multisig.errors import InvalidToken
from multisig.wire import Reader, WireError

TokenAmount = NewType("TokenAmount", int)

# Signed 64 bits: every database, language and LEB128 of nine bytes holds it exactly.
MAX_TOKEN_AMOUNT = TokenAmount(2**63 - 1)
# Most ERC-20 tokens have 18; with more, fewer than ten whole tokens would fit.
MAX_DECIMALS = 18


def token_amount(value: int) -> TokenAmount:
    """`value` raw units, 0 to 2^63 - 1. Raises InvalidToken."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidToken("An amount of a token is a whole number.")
    if not 0 <= value <= MAX_TOKEN_AMOUNT:
        raise InvalidToken("An amount of a token is from 0 to 2^63 - 1 raw units.")
    return TokenAmount(value)


def format_units(amount: TokenAmount, decimals: int) -> str:
    """Whole tokens with all their decimals: 1250 with two decimals is "12.50". Raises InvalidToken."""
    check_decimals(decimals)
    whole, fraction = divmod(token_amount(amount), 10**decimals)
    return f"{whole}.{fraction:0{decimals}d}" if decimals else str(whole)


def check_decimals(decimals: int) -> None:
    """0 to 18. Raises InvalidToken."""
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MAX_DECIMALS:
        raise InvalidToken(f"The decimals are not from 0 to {MAX_DECIMALS}.")


def check_supplies(total: int, maximum: int, decimals: int) -> None:
    """0 <= total <= maximum, 1 <= maximum < 2^63. Raises InvalidToken, which names the largest supply there
    can be.
    """
    check_decimals(decimals)
    for value in (total, maximum):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidToken("A supply is a whole number of raw units, not below zero.")
        if value > MAX_TOKEN_AMOUNT:
            largest = format_units(MAX_TOKEN_AMOUNT, decimals)
            raise InvalidToken(f"The supply is too large: with {decimals} decimals it is at most {largest}.")
    if maximum == 0:
        raise InvalidToken("The maximum supply is zero: no such token could ever exist.")
    if total > maximum:
        raise InvalidToken("The total supply is above the maximum supply.")


def leb128(number: int) -> bytes:
    """The shortest form of 0 to 2^63 - 1. Raises ValueError outside of it."""
    if not 0 <= number <= MAX_TOKEN_AMOUNT:
        raise ValueError("only numbers from 0 to 2^63 - 1 are written")
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def read_leb128(reader: Reader) -> int:
    """The next number. Raises WireError where it ends too early, is not in its shortest form, or is 2^63 or
    more.
    """
    number = 0
    for shift in range(0, 63, 7):
        byte = reader.take(1)[0]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not byte and shift:
                raise WireError("a number is not in its shortest form")
            return number
    raise WireError("a number is longer than nine bytes")


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
# plane are refused beside it. A part of the protocol, so not the table by which other names are read
# (`custody.common.text`), which may follow Unicode; it holds all of that (tests/custody/test_unseen.py).
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
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
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
