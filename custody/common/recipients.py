"""Tell whether a person typed an address, a link with one, or a name of the address book."""

import unicodedata
from typing import Final

from custody.common.text import without_unseen
from multisig import InvalidAddress, Network, WrongNetwork, decode_address

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
