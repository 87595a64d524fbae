"""What a person typed, as the API takes it: rates, amounts and days. Each raises Invalid, at its field."""

import re
from datetime import UTC, datetime

from custody.server.console.context import PageContext
from custody.server.errors import Invalid
from multisig import InvalidAmount, Sats, parse_btc

_RATE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?", re.ASCII)
_TOKENS = re.compile(r"([0-9]{1,20}|[0-9]{1,3}(?:,[0-9]{3}){1,6})(?:\.([0-9]{1,18}))?", re.ASCII)


def fee_rate(page: PageContext) -> str:
    """In sat/vB, as the API takes it. Raises Invalid."""
    text = page.form.one("fee_rate").strip()
    if not _RATE.fullmatch(text):
        words = "Write the rate in sat/vB, with a point and at most three places, as in 2.5."
        raise Invalid.at("/fee_rate", words)
    return text


def btc(text: str, pointer: str) -> Sats:
    """An amount in bitcoin. Raises Invalid."""
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        raise Invalid.at(pointer, f"In BTC an amount is like 0.25. {error}") from None


def query_sats(page: PageContext, name: str) -> int | None:
    """The query's amount in bitcoin, in satoshi; None where none is given. Raises Invalid."""
    text = page.query(name).strip()
    return btc(text, f"/{name}") if text else None


def day_of(typed: str, name: str) -> datetime | None:
    """The beginning of the day in UTC; None where none is typed. Raises Invalid."""
    text = typed.strip()
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if text else None
    except ValueError:
        raise Invalid.at(f"/{name}", "This is not a day: write it as 2026-05-01.") from None


def require_days_in_order(page: PageContext) -> None:
    """``from_day`` and ``to_day`` of a list's filter, named as on the page. Raises Invalid."""
    first, last = day_of(page.query("from_day"), "from_day"), day_of(page.query("to_day"), "to_day")
    if first is not None and last is not None and first > last:
        raise Invalid.at("/from_day", "From is later than To: change one of them.")


def raw_units(text: str, decimals: int, name: str) -> int:
    """From whole tokens: 12.5 with two decimals is 1250. Commas separate thousands only. Raises Invalid."""
    match = _TOKENS.fullmatch(text.strip())
    fraction = "" if match is None else match[2] or ""
    if match is None and "," in text:
        raise Invalid.at(f"/{name}", "The amount has a comma. Write it with a point, as in 0.5.")
    if match is None or len(fraction) > decimals:
        most = f"at most {decimals} decimals" if decimals else "no decimals"
        raise Invalid.at(f"/{name}", f"Type an amount of tokens with {most}, like 12.")
    return int(match[1].replace(",", "") + fraction.ljust(decimals, "0"))
