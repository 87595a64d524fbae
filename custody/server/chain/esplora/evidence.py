"""Proofs of a confirmation: a header's proof of work, and a merkle branch from the transaction to the header.

Pure. A block that is invented upon one that is known costs a liar a real block's work; one that is linked to
nothing known, the work of the least difficulty below.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from multisig.hashes import sha256d
from multisig.network import Network
from multisig.transaction import Transaction

HEADER_BYTES = 80
# The target of difficulty 1.
DIFFICULTY_1 = 0xFFFF << 208
# Core's consensus.powLimit: no header of the network may be easier.
POW_LIMIT = {
    Network.MAINNET: (1 << 224) - 1,
    Network.TESTNET4: (1 << 224) - 1,
    Network.SIGNET: 0x377AE << 216,
    Network.REGTEST: (1 << 255) - 1,
}
# Mainnet's first block under BIP-141: no coin of ours can be older.
SEGWIT_HEIGHT = 481_824
# Mainnet's difficulty was never again below these from these heights on.
MAINNET_LEAST_DIFFICULTY = ((700_000, 10**13), (520_000, 10**12), (SEGWIT_HEIGHT, 5 * 10**11))
# Where the difficulty changes with every 2016th block alone, by a factor of four at most.
RETARGETING = frozenset({Network.MAINNET, Network.SIGNET})
RETARGET_BLOCKS, RETARGET_FACTOR = 2_016, 4
# A transaction of this size may be the two halves of an inner node of the tree instead (CVE-2017-12842).
AMBIGUOUS_BYTES = 64


@dataclass(frozen=True)
class Header:
    """A block's header: hashes in display order, the root as on the wire, the time in Unix seconds."""

    hash: str
    previous: str
    merkle_root: bytes
    time: int
    bits: int

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From its 80 bytes."""
        _, previous, root, time, bits, _ = struct.unpack("<I32s32sIII", raw)
        return cls(sha256d(raw)[::-1].hex(), previous[::-1].hex(), root, time, bits)

    @classmethod
    def build(
        cls, *, version: int, previous: str | None, merkle_root: str, time: int, bits: int, nonce: int
    ) -> Self:
        """From its fields, the hashes in display order."""
        parent = bytes(32) if previous is None else bytes.fromhex(previous)[::-1]
        root = bytes.fromhex(merkle_root)[::-1]
        return cls.parse(struct.pack("<I32s32sIII", version & 0xFFFF_FFFF, parent, root, time, bits, nonce))

    @property
    def target(self) -> int:
        """What the hash must not exceed; 0 where the compact form is none (negative, or too large)."""
        exponent, mantissa = self.bits >> 24, self.bits & 0x7FFFFF
        if self.bits & 0x800000 or exponent > 32:
            return 0
        return mantissa << 8 * (exponent - 3) if exponent >= 3 else mantissa >> 8 * (3 - exponent)

    @property
    def meets_its_target(self) -> bool:
        return int(self.hash, 16) <= self.target


def has_work(header: Header, network: Network, height: int) -> bool:
    """Whether it meets its own target, and the target is not easier than the network allows at that
    height.
    """
    limit = POW_LIMIT[network]
    if network is Network.MAINNET:
        least = next((least for first, least in MAINNET_LEAST_DIFFICULTY if height >= first), 1)
        limit = min(limit, DIFFICULTY_1 // least)
    return header.meets_its_target and header.target <= limit


def could_hold_ours(network: Network, height: int) -> bool:
    """Whether a block with a coin of ours could stand there."""
    return network is not Network.MAINNET or height >= SEGWIT_HEIGHT


def follows(header: Header, before: Header, network: Network, height: int) -> bool:
    """Whether the header at `height` may stand on `before`: it names it, and is as hard as the rules want."""
    if header.previous != before.hash:
        return False
    if network not in RETARGETING:
        return True
    if height % RETARGET_BLOCKS:
        return header.bits == before.bits
    return header.target <= RETARGET_FACTOR * before.target


def merkle_root(txid: str, branch: Sequence[str], position: int) -> bytes | None:
    """The root to which the branch leads, as on the wire; None where the position is not in a tree of that
    depth.

    None also where it is in what the tree only repeats: a node pads its level to its right, never to its left
    (CVE-2012-2459).
    """
    if not 0 <= position < 1 << len(branch):
        return None
    node = bytes.fromhex(txid)[::-1]
    for sibling in branch:
        other = bytes.fromhex(sibling)[::-1]
        if position & 1 and other == node:
            return None
        node = sha256d(other + node) if position & 1 else sha256d(node + other)
        position >>= 1
    return node


def is_ambiguous(transaction: Transaction) -> bool:
    """Whether its bytes could be those of an inner node, so that a branch proves nothing."""
    return len(transaction.serialize(include_witness=False)) == AMBIGUOUS_BYTES
