"""How a device writes an address: where a person compares with a device, that very text stands first.

The form of the network itself stands second, with the reason (``text.as_compared``). "Nearly the same" beside
"confirm only what is the same" would train a person to overlook what an attack looks like.
"""

from multisig import Network, decode_address, encode_address


def on_screen(script: bytes, network: Network) -> str | None:
    """As devices write it; None where the script has no address.

    Most know testnet's form alone for every test network; signet's is the same.
    """
    return encode_address(script, Network.TESTNET4 if network is Network.REGTEST else network)


def address_on_screen(address: str, network: Network) -> str:
    """The same of an address of ``network``. Raises MultisigError where it is none."""
    return on_screen(decode_address(address, network), network) or address
