"""Headers, work and branches, against a real block and against forgeries."""

import struct
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.chain.esplora.blocks import (
    SEGWIT_HEIGHT,
    could_hold_ours,
    follows,
    has_work,
    is_ambiguous,
    merkle_root,
)
from custody.server.chain.raw_blocks import GENESIS_HASH, BlockHeader
from custody.server.chain.raw_blocks import merkle_root as whole_root
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.esplora import GENESIS_HEADER, merkle_branch

# Mainnet's block 100,000.
BLOCK_HASH = "000000000003ba27aa200b1cecaad478d2b00432346c3f1f3986da1afd33e506"
RAW_HEADER = struct.pack(
    "<I32s32sIII",
    1,
    bytes.fromhex("000000000002d01c1fccc21636b607dfd930d31d01c3a62104612a1719011250")[::-1],
    bytes.fromhex("f3e94742aca4b5ef85488dc37c06c3282295ffec960994b2c0d5ac2a25a95766")[::-1],
    1_293_623_863,
    0x1B04864C,
    274_148_111,
)
HEADER = BlockHeader.parse(RAW_HEADER)


def test_a_real_header_has_its_hash_and_its_work():
    assert HEADER.hash == BLOCK_HASH
    assert has_work(HEADER, Network.MAINNET, 100_000)
    changed = bytearray(RAW_HEADER)
    changed[40] ^= 1
    assert not has_work(BlockHeader.parse(bytes(changed)), Network.MAINNET, 100_000)


@given(count=st.integers(1, 40), data=st.data())
def test_every_branch_of_every_tree_leads_to_its_root(count, data):
    txids = [sha256(bytes([number])).hexdigest() for number in range(count)]
    position = data.draw(st.integers(0, count - 1))
    root = whole_root([bytes.fromhex(txid)[::-1] for txid in txids])
    branch = merkle_branch(txids, position)
    assert merkle_root(txids[position], branch, position) == root
    if position ^ 1 < count:
        assert merkle_root(txids[position], branch, position ^ 1) != root
        assert merkle_root(txids[position ^ 1], branch, position) != root


@pytest.mark.parametrize("count", [3, 5, 6, 7, 11])
def test_a_place_in_what_a_tree_only_repeats_is_none(count):
    """CVE-2012-2459: with its copies written out the list has the same root,
    and so does each copy's branch.
    """
    txids = [sha256(bytes([number])).hexdigest() for number in range(count)]
    longer = list(txids)
    while len(longer) & (len(longer) - 1):
        longer += longer[-(len(longer) & -len(longer)) :]
    roots = {whole_root([bytes.fromhex(txid)[::-1] for txid in each]) for each in (txids, longer)}
    found = [merkle_root(txid, merkle_branch(longer, at), at) for at, txid in enumerate(longer)]
    assert set(found[:count]) == roots
    assert set(found[count:]) == {None}


def test_nothing_of_ours_is_older_than_segwit_on_mainnet():
    assert not could_hold_ours(Network.MAINNET, SEGWIT_HEIGHT - 1)
    assert could_hold_ours(Network.MAINNET, SEGWIT_HEIGHT)
    assert could_hold_ours(Network.REGTEST, 1)


def test_an_easy_block_of_mainnet_has_no_work_where_blocks_are_hard():
    """It meets its own target, and a machine at home finds another like it. Nor has regtest's first block."""
    genesis = BlockHeader.parse(GENESIS_HEADER)
    assert genesis.hash == GENESIS_HASH[Network.REGTEST]
    assert [network for network in Network if has_work(genesis, network, 0)] == [Network.REGTEST]
    assert has_work(HEADER, Network.MAINNET, SEGWIT_HEIGHT - 1)
    assert not has_work(HEADER, Network.MAINNET, SEGWIT_HEIGHT)
    assert not has_work(HEADER, Network.MAINNET, 900_000)
    assert has_work(HEADER, Network.TESTNET4, 900_000)


def compact(difficulty):
    target = (0xFFFF << 208) // difficulty
    size = (target.bit_length() + 8) // 8
    return size << 24 | target >> 8 * (size - 3)


@pytest.mark.parametrize(
    ("height", "difficulty", "network", "may"),
    [
        (900_001, 10**14, Network.MAINNET, True),
        (900_001, 10**14 - 10**12, Network.MAINNET, False),
        (900_001, 10**14 + 10**12, Network.MAINNET, False),
        (2_016 * 446, 10**14 // 3, Network.MAINNET, True),
        (2_016 * 446, 10**14 // 5, Network.MAINNET, False),
        (2_016 * 446, 10**15, Network.MAINNET, True),
        (900_001, 10**14 // 5, Network.SIGNET, False),
        (900_001, 1, Network.TESTNET4, True),
        (900_001, 1, Network.REGTEST, True),
    ],
)
def test_a_block_is_as_hard_as_the_one_before(height, difficulty, network, may):
    before = replace(HEADER, bits=compact(10**14))
    header = replace(HEADER, previous=before.hash, hash="00" * 32, bits=compact(difficulty))
    assert follows(header, before, network, height) is may
    assert not follows(replace(header, previous="11" * 32), before, network, height)


def test_a_transaction_of_64_bytes_proves_nothing():
    """CVE-2017-12842: its bytes could be two hashes of the tree."""
    txin = TxIn(OutPoint("11" * 32, 0), 0xFFFFFFFF)
    assert is_ambiguous(Transaction(2, (txin,), (TxOut(Sats(1), b"\x51" * 4),), 0))
    assert not is_ambiguous(Transaction(2, (txin,), (TxOut(Sats(1), b"\x51" * 5),), 0))
