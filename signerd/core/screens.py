"""How a device writes an address: where a person compares with a device, that very text stands first.

The form of the network itself stands second, with the reason (``text.as_compared``). "Nearly the same" beside
"confirm only what is the same" would train a person to overlook what an attack looks like.
"""

from multisig import Network, encode_address


def on_screen(script: bytes, network: Network) -> str | None:
    """As devices write it; None where the script has no address.

    Most know testnet's form alone for every test network; signet's is the same.
    """
    return encode_address(script, Network.TESTNET4 if network is Network.REGTEST else network)
