"""Address formats as the protocol numbers them, and the chains that the device can be set to."""

from dataclasses import dataclass
from enum import IntEnum

from device_simulators.coldcard.errors import CommandRefused
from multisig import Network, Sats, encode_address, format_btc, hash160, p2pkh, p2sh, p2wpkh


class Format(IntEnum):
    """hwilib `ckcc/constants.py`: AF_CLASSIC and its siblings."""

    P2PKH = 0x01
    P2WPKH = 0x07
    P2WPKH_IN_P2SH = 0x13
    P2WSH = 0x0E


# First byte of a 65-byte message signature before the recovery id is added (BIP-137).
MESSAGE_HEADERS = {Format.P2PKH: 31, Format.P2WPKH_IN_P2SH: 35, Format.P2WPKH: 39}


@dataclass(frozen=True)
class Chain:
    """What the device is set to in its menu ("Testnet Mode"). `name` is what `blkc` answers, and the unit after every amount;
    `network` is the one whose forms of keys and addresses it uses.
    """

    name: str
    network: Network

    def address(self, script_pubkey: bytes) -> str | None:
        """The address, or None for a script that has none."""
        return encode_address(script_pubkey, self.network)

    def amount(self, value: Sats) -> str:
        return f"{format_btc(value)} {self.name}"


BITCOIN = Chain("BTC", Network.MAINNET)
TESTNET = Chain("XTN", Network.TESTNET4)
REGTEST = Chain("XRT", Network.REGTEST)


def chain_for(network: Network) -> Chain:
    """As its owner sets it for this network. Every test network is used with the setting "Testnet4", and its addresses' form."""
    return BITCOIN if network is Network.MAINNET else TESTNET


def single_key_format(number: int) -> Format:
    """Raises CommandRefused for formats of scripts, and for those this device does not know."""
    try:
        chosen = Format(number)
    except ValueError:
        chosen = Format.P2WSH
    if chosen not in MESSAGE_HEADERS:
        raise CommandRefused("Unknown/unsupported addr format")
    return chosen


def single_key_script(public_key: bytes, chosen: Format) -> bytes:
    """The output script that pays one key in this format."""
    if chosen is Format.P2PKH:
        return p2pkh(hash160(public_key))
    if chosen is Format.P2WPKH:
        return p2wpkh(public_key)
    return p2sh(hash160(p2wpkh(public_key)))
