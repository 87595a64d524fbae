"""What a person typed as a recipient: an address, a ``bitcoin:`` link with one and an amount (BIP-321), or a
name of the address book.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from custody.common.text import without_unseen
from multisig import InvalidAddress, InvalidAmount, Network, Sats, WrongNetwork, decode_address, sats
from multisig.units import SATS_PER_BTC

SCHEME: Final = "bitcoin:"
# Characters of the shortest Base58 address (a hash of zeros); bech32 has more.
_SHORTEST: Final = 26
_BEGINNINGS: Final = ("1", "2", "3", "m", "n", *(f"{network.hrp}1" for network in Network))


def typed_address(text: str) -> str | None:
    """An address of any network or a ``bitcoin:`` link (BIP-321), without spaces; None for a name.
    Unseen characters and compatibility forms of letters do not make it a name (as in `name_key`), nor does
    mixed case make a bech32 address one, although it is invalid then (BIP-173).
    """
    plain = "".join(unicodedata.normalize("NFKC", without_unseen(text)).split())
    if plain.lower().startswith(SCHEME):
        return plain
    return (
        plain if any(_decodes(each, chain) for each in (plain, plain.lower()) for chain in Network) else None
    )


def reads_as_address(text: str) -> bool:
    """Whether an invalid address may be meant: the text is as long as one, and begins like one."""
    plain = "".join(without_unseen(text).split())
    return len(plain) >= _SHORTEST and plain.isalnum() and plain.lower().startswith(_BEGINNINGS)


def _decodes(text: str, chain: Network) -> bool:
    try:
        decode_address(text, chain)
    except WrongNetwork:
        return True
    except InvalidAddress:
        return False
    return True


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
    values = _query_values(query)
    _require_understood(values)
    amount = _amount(values["amount"][0]) if "amount" in values else None
    return Recipient(unquote(body) or _address_in(values, network), amount)


def _query_values(query: str) -> dict[str, list[str]]:
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


def look_alike_words(
    recipients: Sequence[str], resembles: Sequence[str | None], names: Mapping[str, str]
) -> list[str]:
    """A sentence for each recipient that only resembles a known address, as a preview has them."""
    pairs = zip(recipients, resembles, strict=True)
    return [alike_words(recipient, known, names) for recipient, known in pairs if known is not None]


def alike_words(address: str, known: str, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """That an address only resembles known ones (S37). ``names``: of the address book, by address."""
    each = known.split(", ")
    named = " or ".join(f"{names[one]} in the address book, {one}" if one in names else one for one in each)
    known_by = ", which was paid or named before, is of an own vault or stands beside it,"
    why = "" if names.keys() >= {*each} else known_by
    return (
        f"{address} looks like {named}{why} and is another address: only their ends are alike. Somebody may "
        "have made it to be taken for the other. Compare all of it with the bill."
    )
