"""Output scripts, multisig witness scripts, and OP_RETURN data; and addresses, the written form of output
scripts, for one network at a time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from multisig import encodings
from multisig.errors import InvalidAddress, InvalidTransaction, WrongNetwork
from multisig.hashes import hash160, sha256
from multisig.network import Network
from multisig.units import Sats
from multisig.wire import compact_size

# BIP-388 and Ledger's application take no more keys in a sortedmulti; consensus would take 20.
MAX_COSIGNERS = 15
# One OP_RETURN of 80 bytes relays everywhere; nodes before Bitcoin Core 30 refuse more (core #32406).
MAX_OP_RETURN_BYTES = 80

_OP_0, _OP_1, _OP_16 = 0x00, 0x51, 0x60
_OP_PUSHDATA1 = 0x4C
_OP_RETURN = 0x6A
_OP_CHECKMULTISIG = 0xAE
_KEY_BYTES = 33
_PUSH_KEY = bytes((_KEY_BYTES,))

# Bitcoin Core, policy/policy.cpp GetDustThreshold: the cost of output and spend at 3 sat/vB.
_DUST_SAT_PER_VB = 3
_SPEND_BYTES_LEGACY = 148
_SPEND_BYTES_SEGWIT = 67


class ScriptKind(StrEnum):
    """The kind of an output script. Only the first five have an address that is paid here.

    P2A is the output of Bitcoin Core 28 that anyone may spend, to raise the fee (policy; script OP_1 <4e73>).
    UNKNOWN includes witness versions without rules yet, whose coins anyone can spend today.
    """

    P2PKH = "p2pkh"
    P2SH = "p2sh"
    P2WPKH = "p2wpkh"
    P2WSH = "p2wsh"
    P2TR = "p2tr"
    P2A = "p2a"
    OP_RETURN = "op_return"
    UNKNOWN = "unknown"


def multisig_script(m: int, pubkeys: Sequence[bytes]) -> bytes:
    """m-of-n OP_CHECKMULTISIG over compressed keys, in the order given (BIP-67 sorts them before).

    Raises InvalidTransaction for a quorum that is not 1 <= m <= n <= 15, or keys that are repeated or not
    compressed.
    """
    if not 1 <= m <= len(pubkeys) <= MAX_COSIGNERS:
        raise InvalidTransaction(f"A quorum of {m} out of {len(pubkeys)} keys is not possible.")
    if any(len(key) != _KEY_BYTES or key[0] not in {2, 3} for key in pubkeys):
        raise InvalidTransaction("A multisig script takes compressed public keys only.")
    if len(set(pubkeys)) != len(pubkeys):
        raise InvalidTransaction("A multisig script must not repeat a key.")
    pushes = b"".join([_PUSH_KEY + key for key in pubkeys])
    return bytes((_OP_1 + m - 1,)) + pushes + bytes((_OP_1 + len(pubkeys) - 1, _OP_CHECKMULTISIG))


def parse_multisig_script(script: bytes) -> tuple[int, tuple[bytes, ...]]:
    """The threshold and the keys in script order; the exact inverse of `multisig_script`. Raises
    InvalidTransaction.
    """
    count, rest = divmod(len(script) - 3, _KEY_BYTES + 1)
    if rest or not 1 <= count <= MAX_COSIGNERS:
        raise InvalidTransaction("This is not a multisig script.")
    step = _KEY_BYTES + 1
    keys = tuple(script[2 + step * i : 1 + step * (i + 1)] for i in range(count))
    m = script[0] - _OP_1 + 1
    if multisig_script(m, keys) != script:
        raise InvalidTransaction("This is not a multisig script in its one standard form.")
    return m, keys


def p2wsh(script: bytes) -> bytes:
    """The output script that pays to a witness script (BIP-141)."""
    return bytes((_OP_0, 32)) + sha256(script)


def p2wpkh(pubkey: bytes) -> bytes:
    """The output script that pays to a compressed public key (BIP-141)."""
    return bytes((_OP_0, 20)) + hash160(_exactly(_KEY_BYTES, pubkey))


def p2pkh(key_hash: bytes) -> bytes:
    """The output script that pays to a 20-byte public key hash."""
    return b"\x76\xa9\x14" + _exactly(20, key_hash) + b"\x88\xac"


def p2sh(script_hash: bytes) -> bytes:
    """The output script that pays to a 20-byte script hash (BIP-16)."""
    return b"\xa9\x14" + _exactly(20, script_hash) + b"\x87"


def p2tr(output_key: bytes) -> bytes:
    """The output script that pays to a 32-byte taproot output key (BIP-341)."""
    return bytes((_OP_1, 32)) + _exactly(32, output_key)


def witness_output(version: int, program: bytes) -> bytes:
    """The output script of any witness program: version 0 to 16, 2 to 40 bytes (BIP-141).

    Raises InvalidTransaction.
    """
    if not 0 <= version <= 16 or not 2 <= len(program) <= 40:
        raise InvalidTransaction("There is no such witness program.")
    return bytes((version + _OP_1 - 1 if version else _OP_0, len(program))) + program


def parse_witness_output(script: bytes) -> tuple[int, bytes] | None:
    """Version and program of a witness output script; None for any other script (BIP-141)."""
    if not 4 <= len(script) <= 42 or script[1] != len(script) - 2:
        return None
    if script[0] == _OP_0:
        return 0, script[2:]
    return (script[0] - _OP_1 + 1, script[2:]) if _OP_1 <= script[0] <= _OP_16 else None


def _exactly(length: int, data: bytes) -> bytes:
    if len(data) != length:
        raise InvalidTransaction(f"An output script of this kind takes {length} bytes.")
    return data


def op_return_script(data: bytes) -> bytes:
    """OP_RETURN with 1 to 80 bytes in one push of the shortest form. Raises InvalidTransaction."""
    if not 1 <= len(data) <= MAX_OP_RETURN_BYTES:
        raise InvalidTransaction("OP_RETURN carries 1 to 80 bytes.")
    length = len(data).to_bytes(1)
    push = length if len(data) < _OP_PUSHDATA1 else bytes((_OP_PUSHDATA1,)) + length
    return bytes((_OP_RETURN,)) + push + data


def parse_op_return(script: bytes) -> bytes | None:
    """The data of a script exactly as `op_return_script` makes it; None for any other (S10)."""
    data = script[3:] if script[1:2] == bytes((_OP_PUSHDATA1,)) else script[2:]
    if not 1 <= len(data) <= MAX_OP_RETURN_BYTES or op_return_script(data) != script:
        return None
    return data


def classify(script: bytes) -> ScriptKind:
    """What kind of output script this is. OP_RETURN is any script that begins with it, well formed or not."""
    witness = parse_witness_output(script)
    if script == P2A_SCRIPT:
        return ScriptKind.P2A
    if witness is not None:
        version, program = witness
        return _WITNESS_KINDS.get((version, len(program)), ScriptKind.UNKNOWN)
    if len(script) == 25 and script[:3] == b"\x76\xa9\x14" and script[23:] == b"\x88\xac":
        return ScriptKind.P2PKH
    if len(script) == 23 and script[:2] == b"\xa9\x14" and script[22:] == b"\x87":
        return ScriptKind.P2SH
    return ScriptKind.OP_RETURN if script[:1] == bytes((_OP_RETURN,)) else ScriptKind.UNKNOWN


P2A_SCRIPT = b"\x51\x02\x4e\x73"
_WITNESS_KINDS = {
    (0, 20): ScriptKind.P2WPKH,
    (0, 32): ScriptKind.P2WSH,
    (1, 32): ScriptKind.P2TR,
}


def unaddressed(script: bytes) -> str:
    """What a script without an address is, for people."""
    return "an anchor that anyone may take (P2A)" if script == P2A_SCRIPT else "a script without an address"


def p2a_address(network: Network) -> str:
    """For reading: bc1pfeessrawgf on mainnet. Nobody is paid there, so `decode_address` refuses it."""
    return encodings.encode_segwit(network.hrp, 1, P2A_SCRIPT[2:])


def dust_threshold(script: bytes) -> Sats:
    """The least amount that nodes relay in an output of this script, at 3 sat/vB; 0 for OP_RETURN."""
    if classify(script) is ScriptKind.OP_RETURN:
        return Sats(0)
    output = 8 + len(compact_size(len(script))) + len(script)
    spend = _SPEND_BYTES_LEGACY if parse_witness_output(script) is None else _SPEND_BYTES_SEGWIT
    return Sats(_DUST_SAT_PER_VB * (output + spend))


_KINDS_IN_USE = {ScriptKind.P2WPKH, ScriptKind.P2WSH, ScriptKind.P2TR}


# As many as the outputs of the largest transaction that nodes relay: a review writes each several times.
_ADDRESSES_KEPT = 4_096


@lru_cache(maxsize=_ADDRESSES_KEPT)
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


# How much of each end a person compares who compares in haste.
_ENDS = 4


def ends_of(address: str) -> str:
    """The characters of its ends: those after the prefix (``bc1q``, ``3``), and the last ones."""
    is_segwit = any(address.startswith(network.hrp + "1") for network in Network)
    start = address.index("1") + 2 if is_segwit else 1
    return address[start : start + _ENDS] + address[-_ENDS:]


def resembled(paid: Iterable[str], known: Collection[str], named: Collection[str]) -> dict[str, str]:
    """Of the addresses that are paid, those with the ends of known ones and another middle, each with these,
    five at most and commas between: an attacker makes such an address, and waits for a person who copies it
    from a list (address poisoning). None that is known itself; what only has a name resembles no other name.
    """
    by_ends = defaultdict[str, list[str]](list)
    for one in sorted({*known, *named}):
        by_ends[ends_of(one)].append(one)
    new = {each: by_ends[ends_of(each)] for each in paid if each not in known}
    alike = {each: [one for one in new[each] if one in known or each not in named] for each in new}
    return {each: ", ".join(some[:5]) for each, some in alike.items() if some}


@lru_cache(maxsize=_ADDRESSES_KEPT)
def decode_address(text: str, network: Network) -> bytes:
    """The output script of an address of `network` (BIP-173, BIP-350; P28).

    P2A is refused, and so are witness versions that have no rules yet, although BIP-350 gives them addresses:
    anyone can take such coins. Raises InvalidAddress, WrongNetwork.
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
    if classify(script) is ScriptKind.P2A:
        raise InvalidAddress(
            "This is the address of P2A, whose coins anyone may take.",
            hint="Ask the receiver for an address of their own.",
        )
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
