"""Amounts as they are typed: with their unit, and never as a fraction of a satoshi."""

import re
from typing import Any, Final

import click

from custody.text import SATS_PER_BTC

_BTC: Final = re.compile(r"(0|[1-9][0-9]{0,7})(?:\.([0-9]{1,8}))?\s*btc", re.ASCII | re.IGNORECASE)
_SATS: Final = re.compile(
    r"([1-9][0-9]{0,2}(?:,[0-9]{3})+|0|[1-9][0-9]{0,15})\s*sats?", re.ASCII | re.IGNORECASE
)


def parse_amount(text: str) -> int:
    """Satoshis of ``0.25BTC``, ``0.25 btc``, ``25000 sats`` or ``25,000sats``. Raises ValueError."""
    if found := _BTC.fullmatch(text.strip()):
        whole, fraction = found[1], found[2] or ""
        return int(whole) * SATS_PER_BTC + int(fraction.ljust(8, "0"))
    if found := _SATS.fullmatch(text.strip()):
        return int(found[1].replace(",", ""))
    raise ValueError(f"'{text}' is not an amount: write it with its unit, like 0.25BTC or 25000sats")


def in_btc(sats: int) -> str:
    """An amount as the API writes limits: ``0.25000000``."""
    whole, fraction = divmod(sats, SATS_PER_BTC)
    return f"{whole}.{fraction:08d}"


class Amount(click.ParamType[int]):
    """An amount on the command line, as satoshis."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_amount(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
