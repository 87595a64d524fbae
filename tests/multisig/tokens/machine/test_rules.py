"""What each function does and refuses (docs/tokens.md, "What calls do"), one row of the table at a time."""

from dataclasses import dataclass, field, replace

import pytest

from multisig.tokens import Call, Function, encode_payload
from multisig.tokens.machine import (
    GENESIS_STATE,
    Cell,
    Failure,
    Outcome,
    TokenBlock,
    TokenState,
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
    known: bool = True
    state: TokenState = field(default_factory=TokenState)
    hashes: list[bytes] = field(default_factory=lambda: [GENESIS_STATE])
    undo: list[tuple] = field(default_factory=list)

    def mine(self, *transactions: TokenTransaction) -> tuple[Outcome, ...]:
        height = len(self.hashes)
        block = TokenBlock(height, height.to_bytes(32, "big"), transactions)
        done = judge_block(block, self.state, self.bytecode_of, self.hashes[-1])
        self.state.apply(done.effects)
        self.hashes.append(done.state)
        self.undo.append(done.effects)
        return done.outcomes

    def bytecode_of(self, wanted: bytes):
        return self.blob if self.known and wanted == self.blob.deployment.bytecode_hash else None

    def deploy(self, caller: bytes = OWNER) -> Outcome:
        return self.mine(TokenTransaction(TXID, caller, encode_payload(self.blob.deployment)))[0]

    def call(self, function: Function, caller: bytes = OWNER, **arguments) -> Outcome:
        return self.mine(a_call(function, caller, **arguments))[0]

    def balance(self, holder: bytes) -> int:
        return self.state.get(TXID, Cell.BALANCE, holder) or 0

    def number(self, cell: Cell) -> int:
        return self.state.get(TXID, cell) or 0


def a_call(function: Function, caller: bytes = OWNER, **arguments) -> TokenTransaction:
    payload = Call(contract_id=TXID, function=function, **arguments)
    return TokenTransaction("bb" * 32, caller, encode_payload(payload))


@pytest.fixture
def fresh():
    chain = Chain()
    assert chain.deploy().failure is None
    return chain


@pytest.fixture
def started(fresh):
    assert fresh.call(F.INIT).failure is None
    return fresh


def test_every_function_has_a_rule():
    assert set(RULES) == set(Function)


def test_init_credits_the_total_supply_to_the_owner_once(started):
    assert (started.balance(OWNER), started.number(Cell.SUPPLY)) == (TOTAL, TOTAL)
    assert started.call(F.INIT).failure is Failure.ALREADY_STARTED
    assert started.balance(OWNER) == TOTAL


def test_p33_init_in_the_block_of_its_deployment_is_too_early():
    chain = Chain()
    _, early = chain.mine(
        TokenTransaction(TXID, OWNER, encode_payload(chain.blob.deployment)), a_call(F.INIT)
    )
    assert early.failure is Failure.TOO_EARLY
    assert chain.call(F.INIT).failure is None


@pytest.mark.parametrize("function", [f for f in F if f not in {F.INIT, F.TRANSFER}])
def test_only_the_owner_and_only_after_init(fresh, function):
    arguments = {} if not function.takes_amount else {"amount": 1}
    arguments |= {"address": BOB} if function.takes_address else {}
    assert fresh.call(function, **arguments).failure is Failure.NOT_STARTED
    fresh.call(F.INIT)
    assert fresh.call(function, EVE, **arguments).failure is Failure.NOT_THE_OWNER


def test_a_transfer_moves_what_is_there_and_no_more(started):
    assert started.call(F.TRANSFER, amount=TOTAL, address=BOB).failure is None
    assert (started.balance(OWNER), started.balance(BOB)) == (0, TOTAL)
    again = started.call(F.TRANSFER, amount=1, address=BOB)
    assert (again.failure, again.effects) == (Failure.INSUFFICIENT_BALANCE, ())
    back = started.call(F.TRANSFER, BOB, amount=TOTAL, address=BOB)
    assert (back.failure, back.effects) == (None, ())


def test_p32_nothing_moves_while_paused_nor_to_an_address_that_is_not_listed(started):
    started.call(F.PAUSE)
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is Failure.PAUSED
    assert started.call(F.PAUSE).failure is Failure.PAUSED
    started.call(F.UNPAUSE)
    assert started.call(F.UNPAUSE).failure is Failure.NOT_PAUSED
    started.call(F.ENABLE_WHITELIST)
    assert started.call(F.ENABLE_WHITELIST).failure is Failure.WHITELIST_ALREADY_ON
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is Failure.NOT_LISTED
    assert started.call(F.MINT, amount=1, address=BOB).failure is Failure.NOT_LISTED
    assert started.call(F.MINT, amount=1, address=OWNER).failure is None
    started.call(F.ADD_TO_WHITELIST, address=BOB)
    assert started.call(F.TRANSFER, amount=1, address=BOB).failure is None
    started.call(F.REMOVE_FROM_WHITELIST, address=BOB)
    assert started.call(F.TRANSFER, BOB, amount=1, address=OWNER).failure is None
    assert started.call(F.REMOVE_FROM_WHITELIST, address=BOB).failure is Failure.NOT_LISTED
    started.call(F.DISABLE_WHITELIST)
    assert started.call(F.DISABLE_WHITELIST).failure is Failure.WHITELIST_ALREADY_OFF
    assert started.call(F.TRANSFER, amount=1, address=EVE).failure is None


def test_p31_mint_ends_exactly_at_the_maximum(started):
    left = MAXIMUM - TOTAL
    assert started.call(F.MINT, amount=left + 1, address=BOB).failure is Failure.ABOVE_MAXIMUM
    started.call(F.PAUSE)
    assert started.call(F.MINT, amount=left, address=BOB).failure is None
    assert started.number(Cell.SUPPLY) == MAXIMUM
    assert started.call(F.MINT, amount=2**63 - 1, address=BOB).failure is Failure.ABOVE_MAXIMUM


def test_burn_takes_from_the_owners_own_address_alone(started):
    started.call(F.TRANSFER, amount=10, address=BOB)
    assert started.call(F.BURN, amount=1, address=BOB).failure is Failure.NOT_THE_OWNERS_ADDRESS
    assert started.call(F.BURN, amount=TOTAL, address=OWNER).failure is Failure.INSUFFICIENT_BALANCE
    assert started.call(F.BURN, amount=TOTAL - 10, address=OWNER).failure is None
    assert (started.balance(OWNER), started.number(Cell.SUPPLY)) == (0, 10)


def test_p34_the_previous_owner_may_do_nothing_more(started):
    assert started.call(F.TRANSFER_OWNERSHIP, address=OWNER).failure is Failure.ALREADY_THE_OWNER
    assert started.call(F.TRANSFER_OWNERSHIP, address=BOB).failure is None
    assert started.call(F.PAUSE).failure is Failure.NOT_THE_OWNER
    assert started.call(F.PAUSE, BOB).failure is None
    assert started.balance(OWNER) == TOTAL


def test_the_owner_is_always_listed(started):
    started.call(F.ENABLE_WHITELIST)
    assert started.call(F.ADD_TO_WHITELIST, address=OWNER).failure is Failure.OWNER_IS_LISTED
    assert started.call(F.REMOVE_FROM_WHITELIST, address=OWNER).failure is Failure.OWNER_IS_LISTED
    started.call(F.ADD_TO_WHITELIST, address=BOB)
    assert started.call(F.ADD_TO_WHITELIST, address=BOB).failure is Failure.ALREADY_LISTED
    started.call(F.TRANSFER_OWNERSHIP, address=EVE)
    assert started.call(F.TRANSFER, OWNER, amount=1, address=EVE).failure is None
    assert started.call(F.TRANSFER, OWNER, amount=1, address=OWNER).failure is Failure.NOT_LISTED


def test_a_deployment_is_of_its_bytecode_and_by_its_owner():
    assert Chain().deploy(EVE).failure is Failure.NOT_THE_FIRST_OWNER
    lying = Chain()
    deploy = replace(lying.blob.deployment, ticker="SILVER")
    (outcome,) = lying.mine(TokenTransaction(TXID, OWNER, encode_payload(deploy)))
    assert outcome.failure is Failure.NOT_ITS_BYTECODE
    assert lying.call(F.INIT).failure is Failure.UNKNOWN_CONTRACT


def test_what_is_not_known_is_neither_zero_nor_failed():
    chain = Chain(known=False)
    assert (chain.deploy().known, chain.call(F.INIT).known) == (False, False)
    assert chain.call(F.INIT).failure is None
    chain.known = True
    assert chain.call(F.INIT).known is False, "a deployment that was not judged is replayed, not guessed"


@pytest.mark.parametrize("data", [None, b"CPT", b"CPT\x12" + bytes(32), b"CPT\x1f" + bytes(32)])
def test_what_cannot_be_read_has_no_effect(started, data):
    (outcome,) = started.mine(TokenTransaction("cc" * 32, OWNER, data))
    assert (outcome.failure, outcome.effects, outcome.contract_id) == (Failure.MALFORMED, (), None)


def test_calls_of_one_block_see_each_other_and_one_that_fails_leaves_no_trace(started):
    outcomes = started.mine(
        a_call(F.TRANSFER, amount=TOTAL, address=BOB),
        a_call(F.TRANSFER, amount=1, address=EVE),
        a_call(F.TRANSFER, BOB, amount=5, address=EVE),
    )
    assert [o.failure for o in outcomes] == [None, Failure.INSUFFICIENT_BALANCE, None]
    assert started.balance(EVE) == 5


def test_simulating_changes_nothing(started):
    before = dict(started.state.cells)
    calls = [a_call(F.TRANSFER, amount=TOTAL, address=BOB), a_call(F.TRANSFER, amount=1, address=BOB)]
    found = simulate(calls, 9, started.state, started.bytecode_of)
    assert [one.failure for one in found] == [None, Failure.INSUFFICIENT_BALANCE]
    assert started.state.cells == before


def test_p35_undoing_every_block_leaves_nothing(started):
    started.call(F.TRANSFER, amount=3, address=BOB)
    started.call(F.ENABLE_WHITELIST)
    for effects in reversed(started.undo):
        started.state.undo(effects)
    assert started.state.cells == {}
