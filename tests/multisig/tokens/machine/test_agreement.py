"""The machine and the slow one of `independent` agree about every history,
and about every history with reorganisations.

`TEST_EXAMPLES=400 pytest …/test_agreement.py --hypothesis-seed=1` tries more of them than the gate does.
"""

import hashlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multisig.tokens import Function, TokenCall, encode_payload, parse_bytecode, token_amount
from multisig.tokens.machine import (
    GENESIS_STATE,
    Cell,
    TokenBlock,
    TokenCells,
    TokenFailure,
    TokenTransaction,
    judge_block,
    simulate,
)
from tests.multisig.tokens.machine import independent
from tests.multisig.tokens.machine.histories import EVERY, HOLDERS, KNOWN, Story, Tape
from tests.support.examples import examples

MANY = settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
TAPES = st.binary(min_size=60, max_size=360)
BLOCKS = 30

WORDS = {
    TokenFailure.MALFORMED: "no valid payload",
    TokenFailure.NOT_ITS_BYTECODE: "not of its bytecode",
    TokenFailure.NOT_THE_FIRST_OWNER: "deployed by another",
    TokenFailure.UNKNOWN_CONTRACT: "no such contract",
    TokenFailure.NOT_THE_OWNER: "caller is not the owner",
    TokenFailure.NOT_STARTED: "not started",
    TokenFailure.ALREADY_STARTED: "started already",
    TokenFailure.TOO_EARLY: "deployment has no confirmation",
    TokenFailure.INSUFFICIENT_BALANCE: "balance too small",
    TokenFailure.ABOVE_MAXIMUM: "above the maximum",
    TokenFailure.NOT_THE_OWNERS_ADDRESS: "not the owner's address",
    TokenFailure.NOT_PAUSED: "not paused",
    TokenFailure.ALREADY_THE_OWNER: "owner already",
    TokenFailure.WHITELIST_ALREADY_ON: "whitelist on already",
    TokenFailure.WHITELIST_ALREADY_OFF: "whitelist off already",
    TokenFailure.OWNER_IS_LISTED: "is the owner",
    TokenFailure.ALREADY_LISTED: "listed already",
}
# Two of the machine's reasons are one word for two rules.
AMBIGUOUS = {
    (TokenFailure.NOT_LISTED, "transfer"): "may not receive",
    (TokenFailure.NOT_LISTED, "mint"): "may not receive",
    (TokenFailure.NOT_LISTED, "remove_from_whitelist"): "not listed",
    (TokenFailure.PAUSED, "transfer"): "paused",
    (TokenFailure.PAUSED, "pause"): "paused already",
}


class Node:
    """The machine under test, with what it needs to take blocks back."""

    def __init__(self, blobs=KNOWN):
        parsed = {bytes.fromhex(key): parse_bytecode(blob) for key, blob in blobs.items()}
        self.bytecode_of = parsed.get
        self.state = TokenCells()
        self.done = []

    @property
    def hash(self):
        return self.done[-1].state if self.done else GENESIS_STATE

    def extend(self, block):
        height, block_hash, transactions = block
        rows = tuple(TokenTransaction(txid, bytes.fromhex(by), data) for txid, by, data in transactions)
        before = dict(self.state.cells)
        outcome = judge_block(TokenBlock(height, block_hash, rows), self.state, self.bytecode_of, self.hash)
        assert self.state.cells == before, "judging changes nothing"
        self.state.apply(outcome.effects)
        self.done.append(outcome)
        return [answer(one) for one in outcome.outcomes]

    def take_back(self, count):
        for _ in range(count):
            self.state.apply(each.undone for each in reversed(self.done.pop().effects))

    def cells(self):
        """In the form of the slow machine: contract, kind and holder to bytes."""
        return {
            (contract, int(cell), holder.hex()): value.to_bytes(8, "big") if isinstance(value, int) else value
            for (contract, cell, holder), value in self.state.cells.items()
        }


def answer(outcome):
    if not outcome.known:
        assert outcome.failure is None
        return independent.UNKNOWN
    if outcome.failure is None:
        return independent.DONE
    assert outcome.effects == ()
    function = getattr(getattr(outcome.payload, "function", None), "wire_name", None)
    return AMBIGUOUS.get((outcome.failure, function)) or WORDS[outcome.failure]


def require_same(node, state, state_hash):
    """Cell for cell. The page does not say what a token of unknown bytecode adds to the hash:
    nothing is held then.
    """
    cells = node.cells()
    of_unknown = {key for key in cells if key[0] in state["unknown"]}
    assert {kind for _, kind, _ in of_unknown} <= {Cell.DEPLOYED, Cell.BYTECODE}, "unknown is never zero"
    assert {key: value for key, value in cells.items() if key not in of_unknown} == independent.cells(state)
    if not state["unknown"]:
        assert node.hash == state_hash


def require_sound(node, state):
    for contract, token in state["tokens"].items():
        held = [
            value
            for (of, cell, _), value in node.state.cells.items()
            if (of, cell) == (contract, Cell.BALANCE)
        ]
        supply = node.state.get(contract, Cell.SUPPLY) or 0
        assert sum(held) == supply <= token["maximum"] < 2**63
        assert all(balance > 0 for balance in held)


def followed(blocks, node, rows, blobs=KNOWN):
    """Both machines through the same blocks, compared after each. `rows` are those of the slow one so far."""
    state, previous = rows[-1]
    for block in blocks:
        expected, state, previous = independent.judge_block(state, previous, block, blobs)
        assert node.extend(block) == expected
        require_same(node, state, previous)
        require_sound(node, state)
        rows.append((state, previous))


def beginning():
    return [(independent.nothing(), independent.START)]


@MANY
@given(TAPES)
def test_both_machines_agree_about_every_block(tape):
    followed(Story(Tape(tape)).blocks(BLOCKS), Node(), beginning())


def test_p31_p32_p33_p34_p35_a_long_history_meets_every_rule_and_is_taken_back_to_nothing():
    """The same in every run."""
    node = Node()
    followed(Story(Tape(random.Random(31).randbytes(20_000))).blocks(1_000), node, beginning())
    outcomes = [outcome for done in node.done for outcome in done.outcomes]
    assert {*WORDS.values(), *AMBIGUOUS.values()} <= {answer(outcome) for outcome in outcomes}
    done = [outcome.payload for outcome in outcomes if outcome.known and outcome.failure is None]
    assert {payload.function for payload in done if isinstance(payload, TokenCall)} == set(Function)
    node.take_back(len(node.done))
    assert node.state.cells == {}


def test_simulating_changes_nothing():
    node = Node()
    for block in plain_history():
        node.extend(block)
    before = dict(node.state.cells)
    to = bytes.fromhex(HOLDERS[5])
    pay = TokenCall(contract_id="aa" * 32, function=Function.TRANSFER, amount=token_amount(90), address=to)
    called = TokenTransaction("ee" * 32, bytes.fromhex(HOLDERS[0]), encode_payload(pay))
    found = simulate([called] * 2, 5, node.state, node.bytecode_of)
    assert [one.failure for one in found] == [None, TokenFailure.INSUFFICIENT_BALANCE]
    assert node.state.cells == before


@MANY
@given(TAPES, st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=5))
def test_p35_whatever_is_taken_back_the_state_is_that_of_a_fresh_replay(tape, reorganisations):
    tape, node, rows, chain = Tape(tape), Node(), beginning(), []
    for number, (grown, most) in enumerate(reorganisations):
        story = Story(tape, branch=str(number), state=rows[-1][0], tip=len(chain))
        added = story.blocks(grown)
        followed(added, node, rows)
        chain += added
        taken = min(most, len(chain))
        node.take_back(taken)
        del chain[len(chain) - taken :], rows[len(rows) - taken :]
        require_same(node, *rows[-1])
    fresh = Node()
    followed(chain, fresh, beginning())
    assert [done.state for done in fresh.done] == [done.state for done in node.done]
    assert fresh.state.cells == node.state.cells


@MANY
@given(TAPES, st.integers(0, BLOCKS))
def test_bytecode_that_comes_late_is_derived_by_a_replay_from_the_deployment_on(tape, late):
    chain, node, rows = Story(Tape(tape)).blocks(BLOCKS), Node(), beginning()
    followed(chain[:late], node, rows)
    unknown = [place for place, (state, _) in enumerate(rows) if state["unknown"]]
    node.bytecode_of = Node(EVERY).bytecode_of
    # Before the replay, what was not judged stays unknown.
    followed(chain[late:], node, rows, EVERY)
    since = unknown[0] - 1 if unknown else len(chain)
    node.take_back(len(chain) - since)
    expected = independent.replay(chain, EVERY)
    assert [node.extend(block) for block in chain[since:]] == [row for row, _, _ in expected[since:]]
    # A hash that a hostile person made up stays unknown for ever.
    held = [place for place, (_, state, _) in enumerate(expected) if not state["unknown"]]
    assert [node.done[place].state for place in held] == [expected[place][2] for place in held]


def test_an_effect_taken_back_out_of_order_is_refused():
    node = Node()
    for block in plain_history():
        node.extend(block)
    with pytest.raises(AssertionError):
        node.state.apply(each.undone for each in reversed(node.done[-2].effects))


def plain_history():
    gold = next(iter(KNOWN))
    deploy = bytes.fromhex("43505410" + gold + "02" + "64" + "9601" + "04" + b"GOLD".hex())
    token = "aa" * 32
    owner = HOLDERS[0]
    pay = bytes.fromhex("43505412" + token + "05" + "00" + "66" * 20)
    return [
        (1, b"\x01" * 32, [(token, owner, deploy)]),
        (2, b"\x02" * 32, [("bb" * 32, owner, bytes.fromhex("43505411" + token))]),
        (3, b"\x03" * 32, [("cc" * 32, owner, pay)]),
        (4, b"\x04" * 32, [("dd" * 32, owner, pay)]),
    ]


def test_a_history_worked_out_by_hand_has_this_state_hash():
    """The bytes of docs/understand/tokens.md put together once more, without either machine."""
    token, owner, bob = b"\xaa" * 32, bytes.fromhex(HOLDERS[0]), bytes.fromhex(HOLDERS[5])

    def effect(kind, holder, before, after):
        parts = [holder, before, after]
        return token + bytes([kind]) + b"".join(bytes([len(part)]) + part for part in parts)

    def eight(number):
        return number.to_bytes(8, "big")

    effects = [
        effect(0, b"", b"", eight(1))
        + effect(1, b"", b"", bytes.fromhex(next(iter(KNOWN))))
        + effect(2, b"", b"", owner),
        effect(3, b"", b"", eight(1)) + effect(4, b"", b"", eight(100)) + effect(8, owner, b"", eight(100)),
        effect(8, owner, eight(100), eight(95)) + effect(8, bob, b"", eight(5)),
        effect(8, owner, eight(95), eight(90)) + effect(8, bob, eight(5), eight(10)),
    ]
    state = bytes(32)
    node = Node()
    for number, (block, changed) in enumerate(zip(plain_history(), effects, strict=True), 1):
        state = hashlib.sha256(b"cpt-state-1" + state + bytes([number]) * 32 + changed).digest()
        assert node.extend(block) == [independent.DONE]
        assert node.hash == state
