"""Whom a person meant: an address or a link of one, or a name of the address book."""

import unicodedata
from typing import Final

from multisig import InvalidAddress, Network, WrongNetwork, decode_address

SCHEME: Final = "bitcoin:"
# Of Base58 (a hash of zeros) and of bech32, on all networks.
_SHORTEST: Final = 26
_BEGINNINGS: Final = ("1", "2", "3", "m", "n", *(f"{network.hrp}1" for network in Network))


def typed_address(text: str) -> str | None:
    """What is an address of any network or a ``bitcoin:`` link (BIP-21), without its gaps; None for a name.

    Invisible marks and other forms of one letter do not make it a name (as in `name_key`), nor does a
    bech32 address in mixed case, which is none (BIP-173) and yet reads as one.
    """
    plain = "".join(seen(unicodedata.normalize("NFKC", text)).split())
    if plain.lower().startswith(SCHEME):
        return plain
    return (
        plain if any(_decodes(each, chain) for each in (plain, plain.lower()) for chain in Network) else None
    )


def reads_as_address(text: str) -> bool:
    """Whether a text that is no address may be meant as one: it is as long, and begins as one does."""
    plain = "".join(text.split())
    return len(plain) >= _SHORTEST and plain.isalnum() and plain.lower().startswith(_BEGINNINGS)


def _decodes(text: str, chain: Network) -> bool:
    try:
        decode_address(text, chain)
    except WrongNetwork:
        return True
    except InvalidAddress:
        return False
    return True


def seen(text: str) -> str:
    """Without invisible marks (Unicode's Cf, such as the zero-width space)."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
