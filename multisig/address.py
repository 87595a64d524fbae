"""Addresses: the written form of output scripts, for one network at a time."""

from multisig import encodings
from multisig.errors import InvalidAddress, WrongNetwork
from multisig.network import Network
from multisig.script import ScriptKind, classify, p2pkh, p2sh, parse_witness_output, witness_output

_KINDS_IN_USE = {ScriptKind.P2WPKH, ScriptKind.P2WSH, ScriptKind.P2TR}


def encode_address(script: bytes, network: Network) -> str | None:
    """The address of an output script; None for a script that `decode_address` would not give."""
    kind = classify(script)
    if kind is ScriptKind.P2PKH:
        return encodings.encode_base58check(bytes((network.p2pkh_prefix,)) + script[3:23])
    if kind is ScriptKind.P2SH:
        return encodings.encode_base58check(bytes((network.p2sh_prefix,)) + script[2:22])
    witness = parse_witness_output(script)
    if witness is None or kind not in _KINDS_IN_USE:
        return None
    return encodings.encode_segwit(network.hrp, *witness)


def decode_address(text: str, network: Network) -> bytes:
    """The output script of an address of `network` (BIP-173, BIP-350; P28).

    Witness versions that have no rules yet are refused, although BIP-350 gives them an address: today anyone
    could take such coins. Raises InvalidAddress, WrongNetwork.
    """
    if not text or len(text) > encodings.MAX_BECH32_CHARACTERS:
        raise InvalidAddress("This is not an address: it is empty or too long.")
    hrp = next((n.hrp for n in Network if text.lower().startswith(n.hrp + "1")), None)
    return _decode_base58(text, network) if hrp is None else _decode_segwit(text, hrp, network)


def _decode_segwit(text: str, hrp: str, network: Network) -> bytes:
    try:
        version, program = encodings.decode_segwit(hrp, text)
    except encodings.Bech32Error as error:
        raise InvalidAddress(f"This is not a valid address: {error}.") from error
    if hrp != network.hrp:
        raise WrongNetwork(
            f"The address is for another network than {network}{_regtest_form(text, network)}."
        )
    script = witness_output(version, program)
    if classify(script) not in _KINDS_IN_USE:
        raise InvalidAddress(
            f"Addresses of witness version {version} with {len(program)} bytes have no rules yet.",
            hint="Ask the receiver for another kind of address: coins sent to this one could be taken by "
            "anyone.",
        )
    return script


def _regtest_form(text: str, network: Network) -> str:
    """A device writes a regtest address as a testnet one: this names the regtest form of such an address."""
    if network is not Network.REGTEST or not text.lower().startswith(Network.TESTNET4.hrp + "1"):
        return ""
    address = encode_address(decode_address(text, Network.TESTNET4), network)
    return f", where it is written {address}"


def _decode_base58(text: str, network: Network) -> bytes:
    try:
        payload = encodings.decode_base58check(text)
    except encodings.Base58Error as error:
        raise InvalidAddress(f"This is not an address: {error}.") from error
    if len(payload) != 21:
        raise InvalidAddress("This is not an address: it has the wrong length.")
    prefix, data = payload[0], payload[1:]
    if prefix == network.p2pkh_prefix:
        return p2pkh(data)
    if prefix == network.p2sh_prefix:
        return p2sh(data)
    if any(prefix in {n.p2pkh_prefix, n.p2sh_prefix} for n in Network):
        raise WrongNetwork(f"The address is for another network than {network}.")
    raise InvalidAddress("This is not an address: its prefix is unknown.")
