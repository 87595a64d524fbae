"""Addresses as devices write them. Where a person compares with a device, that form comes first.

The network's own form comes second, with the reason (``text.as_compared``). A person who gets used to
addresses that are nearly the same would overlook an attack.
"""

from multisig import Network, decode_address, encode_address


def on_screen(script: bytes, network: Network) -> str | None:
    """As devices write it; None where the script has no address.

    Most know testnet's form alone for every test network; signet's is the same.
    """
    return encode_address(script, Network.TESTNET4 if network is Network.REGTEST else network)


def address_on_screen(address: str, network: Network) -> str:
    """The device's form of an address of ``network``. Raises MultisigError for a malformed one."""
    return on_screen(decode_address(address, network), network) or address
