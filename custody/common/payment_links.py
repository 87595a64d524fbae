"""Whom a recipient's text names, and how much: a bare address, or a ``bitcoin:`` link (BIP-321)."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from custody.common.recipients import SCHEME
from multisig import InvalidAddress, InvalidAmount, Network, Sats, sats
from multisig.units import SATS_PER_BTC

# BIP-321 lets whole number and fraction be empty or have zeros around; more than eight places are no satoshi.
_AMOUNT = re.compile(r"0*([0-9]{0,8})(?:\.([0-9]{0,8})0*)?", re.ASCII)
_AT_MOST_ONCE = ("amount", "label", "message", "pop")
_ADDRESS_KEYS = frozenset(network.hrp for network in Network)
_NOT_PAID = {
    "lightning": "a Lightning invoice",
    "lno": "a Lightning offer",
    "pay": "a private payment address (BIP-351)",
    "sp": "a silent payment address (BIP-352)",
}


@dataclass(frozen=True)
class Recipient:
    """``address``: as text, not decoded yet. ``amount``: the link's; None where it names none."""

    address: str
    amount: Sats | None = None


def read_recipient(text: str, network: Network) -> Recipient:
    """``network`` decides between the addresses of a link that names several.

    Raises InvalidAddress for a link that is invalid by BIP-321, requires what is not understood here, or
    names no address; InvalidAmount.
    """
    if text[: len(SCHEME)].lower() != SCHEME:
        return Recipient(text)
    if "#" in text:
        raise InvalidAddress("The link has a #, which must be written %23.")
    body, _, query = text[len(SCHEME) :].partition("?")
    values = _values(query)
    _require_understood(values)
    amount = _amount(values["amount"][0]) if "amount" in values else None
    return Recipient(unquote(body) or _address_in(values, network), amount)


def _values(query: str) -> dict[str, list[str]]:
    """By key, whose case does not count."""
    values: dict[str, list[str]] = {}
    for parameter in query.split("&"):
        key, _, value = parameter.partition("=")
        values.setdefault(unquote(key).lower(), []).append(unquote(value))
    return values


def _require_understood(values: dict[str, list[str]]) -> None:
    for key, given in values.items():
        if key.startswith("req-"):
            raise InvalidAddress(
                f"The link requires {key!r}, which is not understood here, and must not be paid without it."
            )
        if key in _AT_MOST_ONCE and len(given) > 1:
            raise InvalidAddress(f"The link names its {key} twice.")
        if key in _ADDRESS_KEYS and not all(value.lower().startswith(key + "1") for value in given):
            raise InvalidAddress(f"The link names under {key!r} what does not begin with {key}1.")


def _address_in(values: dict[str, list[str]], network: Network) -> str:
    """Of a link without an address before its question mark."""
    for key in (network.hrp, *sorted(_ADDRESS_KEYS)):
        if key in values:
            return values[key][0]
    others = [words for key, words in _NOT_PAID.items() if key in values]
    if others:
        raise InvalidAddress(
            f"The link names no address, only {' and '.join(others)}, which is not paid here."
        )
    raise InvalidAddress("The link names no address.")


def _amount(text: str) -> Sats:
    match = _AMOUNT.fullmatch(text)
    if match is None or text in {"", "."}:
        raise InvalidAmount(
            "The link's amount is not a plain decimal number of bitcoin with at most eight places."
        )
    amount = sats(int(match[1] or 0) * SATS_PER_BTC + int((match[2] or "").ljust(8, "0")))
    if amount == 0:
        raise InvalidAmount("The link asks for nothing: its amount is zero.")
    return amount
