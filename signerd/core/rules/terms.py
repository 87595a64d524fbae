"""The words of a rule: amounts with their unit, fee rates, addresses, hours. Each raises ValueError with what to write."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from multisig import FeeRate, Fingerprint, MultisigError, Network, Sats, decode_address, parse_btc, sats
from signerd.core.rules.hours import WEEKDAYS, Hours, minute_of_day

# No more digits than 21 million bitcoin has: int() of thousands of them is refused in the interpreter's own words.
_SATS = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_RATE = re.compile(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,3})?", re.ASCII)
RATE_UNIT = "sat/vB"
HOURS_KEYS = ("zone", "days", "from", "to")


def amount_sats(value: Any) -> Sats:
    """``"0.5 BTC"`` or ``"50000 sat"``: the unit stands in the value, for a bare number is read in either."""
    advice = 'write an amount with its unit: "0.5 BTC" or "50000 sat"'
    number, _space, unit = _text(value, advice).partition(" ")
    try:
        match unit:
            case "BTC":
                return parse_btc(number)
            case "sat" if _SATS.fullmatch(number):
                return sats(int(number))
    except MultisigError as error:
        raise ValueError(f"{_bare(error)}: {advice}") from None
    raise ValueError(advice)


def fee_rate(value: Any) -> FeeRate:
    """``"20 sat/vB"``, with at most three decimal places."""
    advice = 'write a fee rate with its unit: "20 sat/vB" or "2.5 sat/vB"'
    number, _space, unit = _text(value, advice).partition(" ")
    if unit != RATE_UNIT or not _RATE.fullmatch(number):
        raise ValueError(advice)
    try:
        return FeeRate.from_sat_per_vb(Decimal(number))
    except MultisigError as error:
        raise ValueError(f"{_bare(error)}: {advice}") from None


def addresses(value: Any, network: Network) -> frozenset[bytes]:
    """The scripts of a list of addresses of this network."""
    advice = f'write a list of addresses of {network}: ["address", "address"]'
    if not isinstance(value, list) or not value:
        raise ValueError(f"{advice}; to let nobody be paid write always = true")
    return frozenset(_script(item, network, advice) for item in value)


def _script(value: Any, network: Network, advice: str) -> bytes:
    text = _text(value, advice)
    try:
        return decode_address(text, network)
    except MultisigError as error:
        raise ValueError(f'"{text}" is no address of {network}: {_bare(error)}') from None


def hours(value: Any) -> Hours:
    """A table of ``zone``, ``days``, ``from``, ``to``."""
    advice = 'write { zone = "Europe/Berlin", days = ["mon", "tue"], from = "08:00", to = "18:00" }'
    if not isinstance(value, dict) or set(value) != set(HOURS_KEYS):
        raise ValueError(f"it takes {', '.join(HOURS_KEYS)} and nothing else: {advice}")
    opens = minute_of_day(_text(value["from"], advice))
    closes = minute_of_day(_text(value["to"], advice))
    if not opens < closes:
        raise ValueError('"from" must come before "to", on one day; a night ends at "24:00"')
    return Hours(_zone(value["zone"]), _weekdays(value["days"]), opens, closes)


def _zone(value: Any) -> ZoneInfo:
    text = _text(value, 'write a time zone of the IANA list, as "Europe/Berlin" or "UTC"')
    try:
        return ZoneInfo(text)
    # A name that is no file of the zones' folder, or leads out of it, raises many things.
    except (ValueError, OSError, KeyError):
        raise ValueError(
            f'"{text}" is no time zone that this machine knows: write one of the IANA list, as "Europe/Berlin" or "UTC"'
        ) from None


def _weekdays(value: Any) -> frozenset[int]:
    known: Sequence[Any] = WEEKDAYS
    if not isinstance(value, list) or not value or any(day not in known for day in value):
        raise ValueError(f"write the weekdays as a list of {', '.join(WEEKDAYS)}")
    return frozenset(known.index(day) for day in value)


def fingerprints(value: list[Any]) -> frozenset[Fingerprint]:
    """Cosigners, by the fingerprints of their master keys."""
    advice = 'write true, or a list of fingerprints of cosigners whose devices show it all: ["73c5da0a"]'
    if not value:
        raise ValueError(advice)
    try:
        return frozenset(Fingerprint.from_hex(_text(item, advice)) for item in value)
    except MultisigError as error:
        raise ValueError(f"{_bare(error)}: {advice}") from None


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false, without quotes")  # noqa: TRY004 - one kind of error for all terms
    return value


def _bare(error: Exception) -> str:
    return str(error).rstrip(".")


def _text(value: Any, advice: str) -> str:
    if not isinstance(value, str):
        raise ValueError(advice)  # noqa: TRY004 - one kind of error for all terms
    return value
