"""What may stand in a workspace's address book."""

import unicodedata

from custody.recipients import seen, typed_address
from custody.server.domain.errors import Fault, Invalid, StateConflict, WrongNetworkAddress
from multisig import InvalidAddress, Network, WrongNetwork, decode_address, encode_address

# Enough for everyone whom a large company pays.
MAX_ENTRIES = 10_000


class BookIsFull(StateConflict):
    hint = "Remove entries that are no longer needed."


class AlreadyInBook(StateConflict):
    hint = "Rename the entry that is there, or choose another name."


class NameReadsAsAddress(Invalid):
    hint = "Choose a name in words: what reads as an address is paid as that address."


def canonical_address(text: str, network: Network) -> str:
    """The canonical spelling of an address, so that two entries for one script compare equal (P28).

    Raises WrongNetworkAddress, Invalid.
    """
    try:
        canonical = encode_address(decode_address(text, network), network)
    except WrongNetwork as error:
        faults = (Fault("/address", str(error), "wrong-network"),)
        raise WrongNetworkAddress(str(error), faults=faults) from error
    except InvalidAddress as error:
        raise Invalid.at("/address", str(error)) from error
    assert canonical is not None, "a script that an address gave has an address"
    return canonical


def require_name(name: str) -> None:
    """Raises NameReadsAsAddress: a payer who types that address must not pay another one by its name."""
    if typed_address(name) is not None:
        raise NameReadsAsAddress.at("/name", "The name reads as an address or as a bitcoin: link.")


def name_key(name: str) -> str:
    """The key by which names are unique: two names that look the same to a payer have the same key.

    It ignores case, spacing, compatibility forms (NFKC) and invisible characters (Unicode's Cf, such as the
    zero-width space). It does not fold look-alike letters of other alphabets: no such table is complete.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(seen(plain).split())
