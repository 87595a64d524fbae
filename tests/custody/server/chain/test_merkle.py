"""The tree of a block: its root, and the lists that would share one."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.chain.merkle import merkle_root, unmistakable_root

# Mainnet's block 100,000: its transactions and its root.
TXIDS = (
    "8c14f0db3df150123e6f3dbbf30f8b955a8249b62ac1d1ff16284aefa3d06d87",
    "fff2525b8931402dd09222c50775608f75787bd2b87e56995a7bdd30f79702c4",
    "6359f0868171b1d194cbee1af2f16ea598ae8fad666d9b012c8ed2b79a236ec4",
    "e9a66845e05d5abc0ad04ec80f774a7e585c6e8db975962d069a522137b80c1d",
)
ROOT = "f3e94742aca4b5ef85488dc37c06c3282295ffec960994b2c0d5ac2a25a95766"


def leaves(count: int) -> list[bytes]:
    return [sha256(number.to_bytes(2, "big")).digest() for number in range(count)]


def test_a_real_block_has_its_root():
    hashes = [bytes.fromhex(txid)[::-1] for txid in TXIDS]
    assert merkle_root(hashes)[::-1].hex() == ROOT
    assert unmistakable_root(hashes) == merkle_root(hashes)


@given(count=st.integers(1, 70))
def test_what_repeats_nothing_has_one_root(count):
    assert unmistakable_root(leaves(count)) == merkle_root(leaves(count))


@pytest.mark.parametrize(
    ("count", "repeated"), [(3, 1), (5, 1), (6, 2), (7, 1), (12, 4), (13, 1), (14, 2), (20, 4)]
)
def test_a_list_that_repeats_its_end_has_the_same_root_and_is_found_out(count, repeated):
    """CVE-2012-2459, on the lowest level and on those above."""
    whole = leaves(count)
    longer = whole + whole[-repeated:]
    assert merkle_root(longer) == merkle_root(whole)
    assert unmistakable_root(longer) is None


@given(count=st.integers(2, 70), data=st.data())
def test_no_two_neighbours_of_a_pair_are_equal(count, data):
    hashes = leaves(count)
    right = data.draw(st.integers(0, count // 2 - 1)) * 2 + 1
    hashes[right] = hashes[right - 1]
    assert unmistakable_root(hashes) is None
