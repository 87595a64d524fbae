"""An address that a hasty reader takes for another one (S37)."""

import hashlib
from functools import cache

from multisig import Network, decode_address, encode_address
from multisig.script import witness_output
from tests.support.wallets import foreign_script

_CHARACTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


@cache
def forged(script: bytes, network: Network) -> bytes:
    """A witness output script of version 0 whose address has the ends of this one's. Bech32's checksum is
    linear, so bits of the program are found that give the last characters, as an attacker does by trying.
    """
    length, begin = len(script) - 2, script[2:5]
    program = int.from_bytes(begin + hashlib.sha256(script).digest()[: length - 3])

    def made(changed: int) -> bytes:
        return witness_output(0, changed.to_bytes(length))

    def last(each: bytes) -> int:
        written = encode_address(each, network) or ""
        return sum(_CHARACTERS.index(written[-at - 1]) << 5 * at for at in range(4))

    by_lead: dict[int, tuple[int, int]] = {}
    for bit in range(100):
        change, bits = last(made(program ^ 1 << bit)) ^ last(made(program)), 1 << bit
        while (lead := change.bit_length()) in by_lead:
            change, bits = change ^ by_lead[lead][0], bits ^ by_lead[lead][1]
        if change:
            by_lead[lead] = change, bits
    while lead := (last(made(program)) ^ last(script)).bit_length():
        program ^= by_lead[lead][1]
    return made(program)


def alike(address: str, network: Network = Network.REGTEST) -> str:
    return encode_address(forged(decode_address(address, network), network), network) or ""


def look_alikes(name: str, network: Network) -> tuple[bytes, bytes]:
    """Two output scripts with the same ends."""
    return foreign_script(name), forged(foreign_script(name), network)
