"""Builds blocks at regtest's difficulty, and pays out of their coinbases, which anyone may spend."""

import struct
from collections.abc import Iterator, Sequence
from itertools import chain

from custody.server.chain.backend import outputs_of
from custody.server.chain.embedded.index import CoinIndex
from custody.server.chain.embedded.mempool import Mempool
from custody.server.chain.raw_blocks import merkle_root
from multisig.hashes import sha256, sha256d
from multisig.transaction import SEQUENCE_FINAL, OutPoint, Transaction, TxIn, TxOut
from multisig.units import FeeRate, Sats
from multisig.wire import compact_size

NULL_OUTPOINT = OutPoint(txid="00" * 32, vout=0xFFFFFFFF)
GENESIS_TIME = 1_296_688_602
# BIP-9 top bits; no deployment is signalled.
BLOCK_VERSION = 0x20000000
# Regtest's proof-of-work limit: one try in two succeeds.
REGTEST_BITS = 0x207FFFFF
REGTEST_TARGET = 0x7FFFFF << 232
INITIAL_SUBSIDY = 50 * 100_000_000
# Regtest halves every 150 blocks (Core's chain parameters).
HALVING_INTERVAL = 150
# BIP-141, "Commitment structure".
COMMITMENT_HEADER = bytes.fromhex("aa21a9ed")
WITNESS_RESERVED = bytes(32)
# The chain's own coins pay P2WSH(OP_TRUE): a regtest coin is worth nothing, so it needs no key.
MINER_WITNESS_SCRIPT = b"\x51"
MINER_SCRIPT = b"\x00\x20" + sha256(MINER_WITNESS_SCRIPT)


def subsidy(height: int) -> Sats:
    """What the coinbase at `height` may create."""
    return Sats(INITIAL_SUBSIDY >> (height // HALVING_INTERVAL))


def build_block(
    *,
    parent: bytes,
    height: int,
    time: int,
    transactions: Sequence[Transaction],
    fees: Sats,
    extra_nonce: int,
) -> bytes:
    """A serialised block with its proof of work.

    `parent` is a hash in wire order; `extra_nonce` makes two blocks on one parent in one second differ.
    """
    coinbase = _coinbase(height, fees, extra_nonce, transactions)
    body = (coinbase, *transactions)
    root = merkle_root([bytes.fromhex(transaction.txid)[::-1] for transaction in body])
    header = _mine_header(parent, root, time)
    return header + compact_size(len(body)) + b"".join(transaction.serialize() for transaction in body)


def _coinbase(height: int, fees: Sats, extra_nonce: int, transactions: Sequence[Transaction]) -> Transaction:
    wtxids = [bytes(32), *(bytes.fromhex(transaction.wtxid)[::-1] for transaction in transactions)]
    commitment = COMMITMENT_HEADER + sha256d(merkle_root(wtxids) + WITNESS_RESERVED)
    unlocking = _push_height(height) + b"\x08" + struct.pack("<Q", extra_nonce)
    return Transaction(
        version=2,
        inputs=(
            TxIn(NULL_OUTPOINT, sequence=SEQUENCE_FINAL, script_sig=unlocking, witness=(WITNESS_RESERVED,)),
        ),
        outputs=(
            TxOut(Sats(subsidy(height) + fees), MINER_SCRIPT),
            TxOut(Sats(0), b"\x6a" + bytes([len(commitment)]) + commitment),
        ),
        locktime=0,
    )


def _push_height(height: int) -> bytes:
    """BIP-34: the height as the shortest script push; one to sixteen are opcodes of their own."""
    if height <= 16:
        return bytes([0x50 + height])
    size = height.bit_length() // 8 + 1
    return bytes([size]) + height.to_bytes(size, "little")


def _mine_header(parent: bytes, root: bytes, time: int) -> bytes:
    prefix = struct.pack("<I32s32sII", BLOCK_VERSION, parent, root, time, REGTEST_BITS)
    nonce = 0
    while True:
        header = prefix + struct.pack("<I", nonce)
        if int.from_bytes(sha256d(header), "little") <= REGTEST_TARGET:
            return header
        nonce += 1


# Where too little has matured, a hundred blocks bring at least one more coin; after eight of regtest's
# halvings the subsidy is too small for more blocks to help.
MATURING_BLOCKS = 100
MAX_ROUNDS = 12
# An input without signature: outpoint, empty script, sequence, and a quarter of four bytes of witness.
INPUT_VBYTES = 42


def build_payment(
    index: CoinIndex, mempool: Mempool, script: bytes, amount: Sats, rate: FeeRate
) -> Transaction | None:
    """Pays `amount` to `script`, with change back to the chain; None while too little has matured."""
    fixed = _assemble((), (TxOut(amount, script), TxOut(Sats(0), MINER_SCRIPT))).vsize
    chosen: list[OutPoint] = []
    total = 0
    for outpoint, coin_amount in _own_coins(index, mempool):
        chosen.append(outpoint)
        total += coin_amount
        fee = rate.fee_for(fixed + INPUT_VBYTES * len(chosen))
        if total >= amount + fee:
            change = TxOut(Sats(total - amount - fee), MINER_SCRIPT)
            return _assemble(chosen, (TxOut(amount, script), change))
    return None


def _own_coins(index: CoinIndex, mempool: Mempool) -> Iterator[tuple[OutPoint, Sats]]:
    """Mature ones, and then the change of waiting payments: all of them are the chain's own, so it is as good
    as confirmed.
    """
    mature = (coin for coin in index.coins_of(MINER_SCRIPT) if index.is_mature(coin))
    change = (coin for entry in mempool for coin in outputs_of(entry.transaction, None, {MINER_SCRIPT}))
    for coin in chain(mature, change):
        if index.spender(coin.outpoint) is None and mempool.spender(coin.outpoint) is None:
            yield coin.outpoint, coin.amount


def _assemble(coins: Sequence[OutPoint], outputs: tuple[TxOut, ...]) -> Transaction:
    inputs = tuple(
        TxIn(outpoint, sequence=SEQUENCE_FINAL, script_sig=b"", witness=(MINER_WITNESS_SCRIPT,))
        for outpoint in coins
    )
    return Transaction(version=2, inputs=inputs, outputs=outputs, locktime=0)
