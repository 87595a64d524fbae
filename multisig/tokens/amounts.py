"""Amounts of a token in raw units, and what they are in whole tokens. No float ever touches either."""

from typing import NewType

from multisig.errors import InvalidToken
from multisig.tokens.leb128 import MAX_LEB128

TokenAmount = NewType("TokenAmount", int)

# Signed 64 bits: every database, language and LEB128 of nine bytes holds it exactly.
MAX_TOKEN_AMOUNT = TokenAmount(MAX_LEB128)
# As the great majority of ERC-20 tokens have; with more, less than ten whole tokens would fit.
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
    """0 <= total <= maximum, 1 <= maximum < 2^63. Raises InvalidToken, which names the largest supply there can be."""
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
