"""What may stand in a workspace's address book."""

from custody.common.recipients import typed_address
from custody.common.text import require_seen
from custody.server.errors import Fault, Invalid, StateConflict, WrongNetworkAddress
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
    """Raises NameReadsAsAddress: a payer who types that address must not pay another one by its name. Raises
    Invalid where a reader cannot see a part of it.
    """
    if typed_address(name) is not None:
        raise NameReadsAsAddress.at("/name", "The name reads as an address or as a bitcoin: link.")
    try:
        require_seen(name)
    except ValueError as error:
        raise Invalid.at("/name", f"The name {error}.") from None
