"""The attacks on tokens ("What calls do" in docs/understand/tokens.md), simulating, and undoing. Every rule
of a function: test_agreement.py, against a second machine.
"""

from dataclasses import dataclass, field

import pytest

from multisig.tokens import Function, TokenCall, encode_payload
from multisig.tokens.machine import (
    GENESIS_STATE,
    Cell,
    TokenBlock,
    TokenCells,
    TokenFailure,
    TokenOutcome,
    TokenTransaction,
    judge_block,
    simulate,
)
from multisig.tokens.machine.rules import RULES
from tests.multisig.tokens.samples import OWNER, bytecode

BOB = bytes.fromhex("0014") + bytes(20)
EVE = bytes.fromhex("5120") + b"\x07" * 32
TXID = "aa" * 32
MAXIMUM = 500_000
TOTAL = 100_000
F = Function


@dataclass
class Chain:
    """Blocks of one transaction each, at heights from 1."""

    blob: object = field(default_factory=bytecode)
    state: TokenCells = field(default_factory=TokenCells)
    hashes: list[bytes] = field(default_factory=lambda: [GENESIS_STATE])
    undo: list[tuple] = field(default_factory=list)

    def mine(self, *transactions: TokenTransaction) -> tuple[TokenOutcome, ...]:
        height = len(self.hashes)
        block = TokenBlock(height, height.to_bytes(32, "big"), transactions)
        done = judge_block(block, self.state, self.bytecode_of, self.hashes[-1])
        self.state.apply(done.effects)
        self.hashes.append(done.state)
        self.undo.append(done.effects)
        return done.outcomes

    def bytecode_of(self, wanted: bytes):
        return self.blob if wanted == self.blob.deployment.bytecode_hash else None

    def deploy(self, caller: bytes = OWNER) -> TokenOutcome:
        return self.mine(TokenTransaction(TXID, caller, encode_payload(self.blob.deployment)))[0]

    def call(self, function: Function, caller: bytes = OWNER, **arguments) -> TokenOutcome:
        return self.mine(a_call(function, caller, **arguments))[0]

    def balance(self, holder: bytes) -> int:
        return self.state.get(TXID, Cell.BALANCE, holder) or 0

    def number(self, cell: Cell) -> int:
        return self.state.get(TXID, cell) or 0


def a_call(function: Function, caller: bytes = OWNER, **arguments) -> TokenTransaction:
    payload = TokenCall(contract_id=TXID, function=function, **arguments)
    return TokenTransaction("bb" * 32, caller, encode_payload(payload))


@pytest.fixture
def started():
    chain = Chain()
    assert chain.deploy().failure is None
    assert chain.call(F.INIT).failure is None
    return chain


def test_every_function_has_a_rule():
    assert set(RULES) == set(Function)


def test_p33_init_in_the_block_of_its_deployment_is_too_early():
    chain = Chain()
    _, early = chain.mine(
        TokenTransaction(TXID, OWNER, encode_payload(chain.blob.deployment)), a_call(F.INIT)
    )
    assert early.failure is TokenFailure.TOO_EARLY
    assert chain.call(F.INIT).failure is None


def test_p32_nothing_moves_while_paused_nor_to_an_address_that_is_not_listed(started):
    started.call(F.PAUSE)
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is TokenFailure.PAUSED
    assert started.call(F.PAUSE).failure is TokenFailure.PAUSED
    started.call(F.UNPAUSE)
    assert started.call(F.UNPAUSE).failure is TokenFailure.NOT_PAUSED
    started.call(F.ENABLE_WHITELIST)
    assert started.call(F.ENABLE_WHITELIST).failure is TokenFailure.WHITELIST_ALREADY_ON
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is TokenFailure.NOT_LISTED
    assert started.call(F.MINT, amount=1, address=BOB).failure is TokenFailure.NOT_LISTED
    assert started.call(F.MINT, amount=1, address=OWNER).failure is None
    started.call(F.ADD_TO_WHITELIST, address=BOB)
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is None
    started.call(F.REMOVE_FROM_WHITELIST, address=BOB)
    assert started.call(F.TRANSFER, BOB, amount=1, address=OWNER).failure is None
    assert started.call(F.REMOVE_FROM_WHITELIST, address=BOB).failure is TokenFailure.NOT_LISTED
    started.call(F.DISABLE_WHITELIST)
    assert started.call(F.DISABLE_WHITELIST).failure is TokenFailure.WHITELIST_ALREADY_OFF
    assert started.call(F.TRANSFER, amount=1, address=EVE).failure is None


def test_p31_mint_ends_exactly_at_the_maximum(started):
    left = MAXIMUM - TOTAL
    assert started.call(F.MINT, amount=left + 1, address=BOB).failure is TokenFailure.ABOVE_MAXIMUM
    started.call(F.PAUSE)
    assert started.call(F.MINT, amount=left, address=BOB).failure is None
    assert started.number(Cell.SUPPLY) == MAXIMUM
    assert started.call(F.MINT, amount=2**63 - 1, address=BOB).failure is TokenFailure.ABOVE_MAXIMUM


def test_p34_the_previous_owner_may_do_nothing_more(started):
    assert started.call(F.TRANSFER_OWNERSHIP, address=OWNER).failure is TokenFailure.ALREADY_THE_OWNER
    assert started.call(F.TRANSFER_OWNERSHIP, address=BOB).failure is None
    assert started.call(F.PAUSE).failure is TokenFailure.NOT_THE_OWNER
    assert started.call(F.PAUSE, BOB).failure is None
    assert started.balance(OWNER) == TOTAL


def test_simulating_changes_nothing(started):
    before = dict(started.state.cells)
    calls = [a_call(F.TRANSFER, amount=TOTAL, address=BOB), a_call(F.TRANSFER, amount=1, address=BOB)]
    found = simulate(calls, 9, started.state, started.bytecode_of)
    assert [one.failure for one in found] == [None, TokenFailure.INSUFFICIENT_BALANCE]
    assert started.state.cells == before


def test_p35_undoing_every_block_leaves_nothing(started):
    started.call(F.TRANSFER, amount=3, address=BOB)
    started.call(F.ENABLE_WHITELIST)
    for effects in reversed(started.undo):
        started.state.apply(each.undone for each in reversed(effects))
    assert started.state.cells == {}
