"""From confirmed transactions to effects: a pure function of the blocks, in order, and of the bytecode that
they commit to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from multisig.errors import InvalidToken
from multisig.tokens.bytecode import Bytecode, check_deployment
from multisig.tokens.machine.rules import CallContext, NoEffect, TokenFailure, run
from multisig.tokens.machine.state import Cell, Effect, Overlay, StateView, Writer, state_hash
from multisig.tokens.payload import Deploy, Payload, TokenCall, decode_payload

# The bytecode with this hash, where it is known.
BytecodeOf = Callable[[bytes], Bytecode | None]


@dataclass(frozen=True, slots=True)
class TokenTransaction:
    """A confirmed transaction that carries data of a token.

    `caller`: the output script that its first input spends. `data`: what its one OP_RETURN output pushes;
    None where it has several such outputs, or one with a value: such a transaction has no effect.
    """

    txid: str
    caller: bytes
    data: bytes | None


@dataclass(frozen=True, slots=True)
class TokenBlock:
    """`transactions` in the order of the block; those without data of a token may be left out."""

    height: int
    block_hash: bytes
    transactions: tuple[TokenTransaction, ...]


@dataclass(frozen=True, slots=True)
class TokenOutcome:
    """What one transaction did.

    `failure`: why it had no effect. `known` false: the effect is not known because the token's bytecode is
    not; once that is, the chain has to be replayed from the deployment on.
    """

    txid: str
    payload: Payload | None
    effects: tuple[Effect, ...] = ()
    failure: TokenFailure | None = None
    known: bool = True

    @property
    def contract_id(self) -> str | None:
        if isinstance(self.payload, TokenCall):
            return self.payload.contract_id
        return None if self.payload is None else self.txid


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """`effects` in order; `state` is the hash of the state after the block."""

    height: int
    block_hash: bytes
    outcomes: tuple[TokenOutcome, ...]
    effects: tuple[Effect, ...]
    state: bytes


def judge_block(block: TokenBlock, view: StateView, bytecode_of: BytecodeOf, previous: bytes) -> BlockOutcome:
    """What a block does to the state before it. `previous` is that state's hash. Changes nothing."""
    overlay = Overlay(view)
    outcomes = []
    for transaction in block.transactions:
        outcome = judge(transaction, block.height, overlay, bytecode_of)
        overlay.apply(outcome.effects)
        outcomes.append(outcome)
    effects = tuple(overlay.effects)
    state = state_hash(previous, block.block_hash, effects)
    return BlockOutcome(block.height, block.block_hash, tuple(outcomes), effects, state)


def judge(
    transaction: TokenTransaction, height: int, view: StateView, bytecode_of: BytecodeOf
) -> TokenOutcome:
    """What one transaction does to the state before it. Never raises for what it says. Changes nothing."""
    payload = _payload(transaction.data)
    if payload is None:
        return TokenOutcome(transaction.txid, None, failure=TokenFailure.MALFORMED)
    case = _Case(transaction, height, view, bytecode_of)
    try:
        return case.deployed(payload) if isinstance(payload, Deploy) else case.called(payload)
    except NoEffect as none:
        return TokenOutcome(transaction.txid, payload, failure=none.failure)


def simulate(
    calls: Sequence[TokenTransaction], height: int, view: StateView, bytecode_of: BytecodeOf
) -> tuple[TokenOutcome, ...]:
    """What these would do one after another in a block of their own at `height`: before they are built, or
    while they wait.
    """
    block = TokenBlock(height, bytes(32), tuple(calls))
    return judge_block(block, view, bytecode_of, bytes(32)).outcomes


def _payload(data: bytes | None) -> Payload | None:
    if data is None:
        return None
    try:
        return decode_payload(data)
    except InvalidToken:
        return None


@dataclass(frozen=True, slots=True)
class _Case:
    transaction: TokenTransaction
    height: int
    view: StateView
    bytecode_of: BytecodeOf

    def called(self, call: TokenCall) -> TokenOutcome:
        token = Writer(self.view, call.contract_id)
        committed = token.get(Cell.BYTECODE)
        if committed is None:
            raise NoEffect(TokenFailure.UNKNOWN_CONTRACT)
        assert isinstance(committed, bytes)
        bytecode = self.bytecode_of(committed)
        if bytecode is None or token.get(Cell.OWNER) is None:
            return TokenOutcome(self.transaction.txid, call, known=False)
        run(CallContext(call, self.transaction.caller, self.height, token, bytecode))
        return TokenOutcome(self.transaction.txid, call, tuple(token.effects()))

    def deployed(self, deploy: Deploy) -> TokenOutcome:
        token = Writer(self.view, self.transaction.txid)
        if token.get(Cell.DEPLOYED) is not None:
            raise NoEffect(TokenFailure.ALREADY_DEPLOYED)
        bytecode = self.bytecode_of(deploy.bytecode_hash)
        token.set(Cell.DEPLOYED, self.height)
        token.set(Cell.BYTECODE, deploy.bytecode_hash)
        if bytecode is not None:
            self._require_own_bytecode(deploy, bytecode)
            _set_initial_cells(token, bytecode)
        return TokenOutcome(self.transaction.txid, deploy, tuple(token.effects()), known=bytecode is not None)

    def _require_own_bytecode(self, deploy: Deploy, bytecode: Bytecode) -> None:
        try:
            check_deployment(deploy, bytecode)
        except InvalidToken:
            raise NoEffect(TokenFailure.NOT_ITS_BYTECODE) from None
        if self.transaction.caller != bytecode.owner_script:
            # Otherwise anyone could publish a token in the name of a vault.
            raise NoEffect(TokenFailure.NOT_THE_FIRST_OWNER)


def _set_initial_cells(token: Writer, bytecode: Bytecode) -> None:
    token.set(Cell.OWNER, bytecode.owner_script)
    token.set(Cell.WHITELIST, int(bytecode.whitelist_enabled))
    for holder in bytecode.whitelist:
        token.set(Cell.LISTED, 1, holder)
