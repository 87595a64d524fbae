"""Amounts of a token in raw units, and as whole tokens. Neither is ever a float."""

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
