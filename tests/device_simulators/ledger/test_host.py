"""The virtual Ledger believes no host: every proof and every preimage is checked (app-bitcoin-new,
doc/merkle.md).
"""

import random
from hashlib import sha256

import pytest
from hwilib.devices.ledger_bitcoin import client_command, merkle
from hwilib.devices.ledger_bitcoin.merkle import MerkleTree, element_hash

from device_simulators.ledger.host import is_right_child_at, leaf_preimage, root_of_proof
from multisig import DerivationPath, recover_message_key
from tests.support.ledger_host import OK, VAULT, Tamper, policy_of, registered, spending, table
from tests.support.virtual import seed, spend

pytestmark = pytest.mark.anyio

PREIMAGE, PROOF, MORE = 0x40, 0x41, 0xA0
REFUSED = (0x6A80, b"")
PATH = "m/84'/1'/0'/0/0"


@pytest.mark.parametrize("size", [*range(1, 18), 64, 65, 100])
def test_proofs_lead_to_the_root_that_hosts_compute(size):
    leaves = [sha256(leaf_preimage(bytes((number,)))).digest() for number in range(size)]
    tree = MerkleTree(leaves)
    for index, leaf in enumerate(leaves):
        assert leaf == element_hash(bytes((index,)))
        assert root_of_proof(leaf, is_right_child_at(size, index), tree.prove_leaf(index)) == tree.root


def when(command: int, change, *, nth: int = 0) -> Tamper:
    """Change the host's answer to the nth request of this kind."""
    seen = 0

    def tamper(request: bytes, answer: bytes) -> bytes:
        nonlocal seen
        if request[0] != command:
            return answer
        seen += 1
        return change(answer) if seen == nth + 1 else answer

    return tamper


def flip(at: int):
    def change(answer: bytes) -> bytes:
        flipped = bytearray(answer)
        flipped[at] ^= 1
        return bytes(flipped)

    return change


async def refused(tamper: Tamper, *, inputs: int = 1) -> None:
    """Whatever the host lies about, the person is not asked, and the next command works."""
    policy = policy_of(VAULT)
    async with table() as it:
        mark = await registered(it.host, policy)
        before = len(it.record.prompts)
        honest = spending(spend(VAULT, inputs=inputs), policy)
        assert await it.host.sign(honest, mark, tamper) == REFUSED
        assert len(it.record.prompts) == before
        assert (await it.host.sign(honest, mark))[0] == OK
        assert len(it.host.yielded) == inputs


@pytest.mark.parametrize("nth", [*range(12), 30, 50])
async def test_another_preimage(nth):
    await refused(when(PREIMAGE, flip(-1), nth=nth))


@pytest.mark.parametrize("nth", [*range(12), 30])
async def test_another_leaf_or_another_proof(nth):
    await refused(when(PROOF, flip(0), nth=nth))
    await refused(when(PROOF, flip(-1), nth=nth))


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer[:10],
        lambda answer: answer + b"\x00",
        lambda _: b"",
        lambda answer: answer[:32] + b"\x00\x00",
        lambda answer: answer[:32] + b"\x01\x01" + bytes(32),
        lambda answer: answer[:32] + b"\xff" + answer[33:],
    ],
)
async def test_proofs_of_a_wrong_form(change):
    await refused(when(PROOF, change, nth=4))


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"\x00\x00",
        lambda answer: answer[:-1],
        lambda answer: answer + b"\x00",
        lambda _: b"\xff" + b"\xff" * 8 + b"\x00",
        lambda answer: b"\xfd\x05\x00" + answer[1:],
    ],
)
async def test_preimages_of_a_wrong_form(change):
    await refused(when(PREIMAGE, change, nth=2))


@pytest.mark.parametrize(
    "change",
    [lambda _: b"\x00\x01", lambda _: b"\x01\x02ab", lambda _: b"", lambda answer: answer + b"a", flip(5)],
)
async def test_a_host_that_does_not_give_the_rest_or_another_rest(change):
    """The previous transactions are too long for one answer."""
    policy = policy_of(VAULT)
    psbt = spend(VAULT)
    honest = spending(psbt, policy)
    honest.inputs[0][b"\x00"] = b"\x02\x00\x00\x00" + bytes(
        300
    )  # no transaction, but the lie is found before
    async with table() as it:
        mark = await registered(it.host, policy)
        assert await it.host.sign(honest, mark, when(MORE, change)) == REFUSED
        assert (await it.host.sign(spending(psbt, policy), mark))[0] == OK


async def test_a_message_of_many_chunks_needs_proofs_in_two_parts():
    text = bytes(range(32, 127)) * 50
    assert len(text) > 65 * 64
    async with table() as it:
        status, signature = await it.host.sign_message(text, PATH)
        assert status == OK
        (prompt,) = it.record.prompts
        assert f"Message hash {sha256(text).hexdigest().upper()}" in prompt.lines
    key = seed().public_key(DerivationPath.parse(PATH))
    assert recover_message_key(text.decode(), signature) == key


@pytest.mark.parametrize(
    "change",
    [
        flip(2),
        lambda _: b"\x00\x20",
        lambda answer: b"\x01\x10" + answer[2:],
        lambda answer: b"\x02\x20" + answer[2:] + bytes(32),
    ],
)
async def test_the_rest_of_a_proof_is_checked_too(change):
    async with table() as it:
        assert await it.host.sign_message(b"a" * 70 * 64, PATH, when(MORE, change)) == REFUSED
        assert it.record.prompts == []


async def test_a_node_is_not_taken_for_a_leaf():
    """In a tree that is said to be smaller than it is, a node stands where a leaf should; its first byte
    tells.
    """
    tree = MerkleTree([element_hash(bytes((number,))) for number in range(4)])
    left, right = tree.root_node.left, tree.root_node.right
    node = b"\x01" + left.left.value + left.right.value
    async with table() as it:
        status, request = await it.host.exchange(0xE1, 0x10, b"\x00" + bytes((2 * 64,)) + tree.root)
        assert (status, request[0]) == (0xE000, PROOF)
        status, request = await it.host.exchange(0xF8, 0x01, left.value + b"\x01\x01" + right.value)
        assert (status, request) == (0xE000, bytes((PREIMAGE, 0)) + left.value)
        assert await it.host.exchange(0xF8, 0x01, bytes((len(node), len(node))) + node) == REFUSED


@pytest.mark.parametrize("which", ["globals", "inputs", "outputs"])
async def test_a_map_whose_keys_are_out_of_order_could_have_two_values_for_one(which, monkeypatch):
    policy = policy_of(VAULT)
    lie = spending(spend(VAULT), policy)
    mapping = lie.globals if which == "globals" else getattr(lie, which)[0]
    items = [*sorted(mapping.items())]
    items[0], items[1] = items[1], items[0]

    def unsorted(what):
        pairs = list(what)
        return items if sorted(pairs) == sorted(items) else sorted(pairs)

    async with table() as it:
        mark = await registered(it.host, policy)
        before = len(it.record.prompts)
        monkeypatch.setattr(merkle, "sorted", unsorted, raising=False)
        monkeypatch.setattr(client_command, "sorted", unsorted, raising=False)
        assert await it.host.sign(lie, mark) == REFUSED
        assert len(it.record.prompts) == before


@pytest.mark.parametrize("lie", range(40))
async def test_no_lie_however_silly_confuses_it_s23(lie, caplog):
    """Bytes changed, cut off and added, in whichever answer: a status word, and the next command works."""
    chance = random.Random(lie)
    policy = policy_of(VAULT)

    def tamper(_request: bytes, answer: bytes) -> bytes:
        if chance.random() > 0.03:
            return answer
        changed = bytearray(answer or b"\x00")
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed[: chance.choice([1, 33, 255])])

    async with table() as it:
        mark = await registered(it.host, policy)
        for _ in range(3):
            status, _ = await it.host.sign(spending(spend(VAULT), policy), mark, tamper)
            assert status in {OK, 0x6A80, 0x6A82}
        assert (await it.host.exchange(0xE1, 0x05))[0] == OK
    assert caplog.text == ""
