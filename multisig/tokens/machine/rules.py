"""The rule of each function, in one table ("What calls do" in docs/understand/tokens.md).

A rule reads and writes one token. Where the call has no effect, it raises `NoEffect` with the reason, and
nothing has changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from multisig.tokens.bytecode import Bytecode
from multisig.tokens.machine.state import Cell, Writer
from multisig.tokens.payload import Function, TokenCall


@unique
class TokenFailure(StrEnum):
    """Why a transaction had no effect."""

    MALFORMED = "malformed"
    ALREADY_DEPLOYED = "already-deployed"
    NOT_ITS_BYTECODE = "not-its-bytecode"
    NOT_THE_FIRST_OWNER = "not-the-first-owner"
    UNKNOWN_CONTRACT = "unknown-contract"
    NOT_THE_OWNER = "not-the-owner"
    TOO_EARLY = "too-early"
    ALREADY_STARTED = "already-started"
    NOT_STARTED = "not-started"
    PAUSED = "paused"
    NOT_PAUSED = "not-paused"
    NOT_LISTED = "not-listed"
    ALREADY_LISTED = "already-listed"
    OWNER_IS_LISTED = "owner-is-listed"
    WHITELIST_ALREADY_ON = "whitelist-already-on"
    WHITELIST_ALREADY_OFF = "whitelist-already-off"
    INSUFFICIENT_BALANCE = "insufficient-balance"
    ABOVE_MAXIMUM = "above-maximum"
    NOT_THE_OWNERS_ADDRESS = "not-the-owners-address"
    ALREADY_THE_OWNER = "already-the-owner"


class NoEffect(Exception):
    """A call that has no effect. Not an error: anyone may put such calls on a chain."""

    def __init__(self, failure: TokenFailure) -> None:
        super().__init__(failure.value)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call as its rule sees it: `caller` is the output script that input 0 spends, `height` that of its
    block.
    """

    call: TokenCall
    caller: bytes
    height: int
    token: Writer
    bytecode: Bytecode

    @property
    def owner(self) -> bytes:
        owner = self.token.get(Cell.OWNER)
        assert isinstance(owner, bytes)
        return owner

    @property
    def amount(self) -> int:
        assert self.call.amount is not None
        return self.call.amount

    @property
    def address(self) -> bytes:
        assert self.call.address is not None
        return self.call.address

    def require(self, holds: bool, failure: TokenFailure) -> None:
        if not holds:
            raise NoEffect(failure)

    def may_receive(self, holder: bytes) -> bool:
        """Whether `holder` may receive; the current owner always may."""
        open_to_all = not self.token.number(Cell.WHITELIST)
        return open_to_all or holder == self.owner or bool(self.token.number(Cell.LISTED, holder))

    def add(self, holder: bytes, amount: int) -> None:
        self.token.set(Cell.BALANCE, self.token.number(Cell.BALANCE, holder) + amount, holder)

    def take(self, holder: bytes, amount: int) -> None:
        balance = self.token.number(Cell.BALANCE, holder)
        self.require(balance >= amount, TokenFailure.INSUFFICIENT_BALANCE)
        self.token.set(Cell.BALANCE, balance - amount, holder)


def run(context: CallContext) -> None:
    """Raises NoEffect."""
    function, token = context.call.function, context.token
    context.require(function not in OWNERS or context.caller == context.owner, TokenFailure.NOT_THE_OWNER)
    started = bool(token.number(Cell.STARTED))
    context.require(started or function is Function.INIT, TokenFailure.NOT_STARTED)
    RULES[function](context)


def _init(context: CallContext) -> None:
    context.require(not context.token.number(Cell.STARTED), TokenFailure.ALREADY_STARTED)
    # A deployment in the same block has no confirmation yet when this call enters it.
    context.require(context.token.number(Cell.DEPLOYED) < context.height, TokenFailure.TOO_EARLY)
    context.token.set(Cell.STARTED, 1)
    context.token.set(Cell.SUPPLY, context.bytecode.total_supply)
    context.add(context.owner, context.bytecode.total_supply)


def _transfer(context: CallContext) -> None:
    context.require(not context.token.number(Cell.PAUSED), TokenFailure.PAUSED)
    context.require(context.may_receive(context.address), TokenFailure.NOT_LISTED)
    context.take(context.caller, context.amount)
    context.add(context.address, context.amount)


def _mint(context: CallContext) -> None:
    supply = context.token.number(Cell.SUPPLY) + context.amount
    context.require(supply <= context.bytecode.max_supply, TokenFailure.ABOVE_MAXIMUM)
    context.require(context.may_receive(context.address), TokenFailure.NOT_LISTED)
    context.token.set(Cell.SUPPLY, supply)
    context.add(context.address, context.amount)


def _burn(context: CallContext) -> None:
    context.require(context.address == context.owner, TokenFailure.NOT_THE_OWNERS_ADDRESS)
    context.take(context.owner, context.amount)
    context.token.set(Cell.SUPPLY, context.token.number(Cell.SUPPLY) - context.amount)


def _switch(cell: Cell, value: int, already: TokenFailure) -> Callable[[CallContext], None]:
    """The rule of a call that sets a cell of the whole token to 0 or 1, which it must not be already."""

    def rule(context: CallContext) -> None:
        context.require(context.token.number(cell) != value, already)
        context.token.set(cell, value)

    return rule


def _list(value: int, already: TokenFailure) -> Callable[[CallContext], None]:
    """The rule of a call that lists an address (1), or takes it from the list (0)."""

    def rule(context: CallContext) -> None:
        context.require(context.address != context.owner, TokenFailure.OWNER_IS_LISTED)
        context.require(context.token.number(Cell.LISTED, context.address) != value, already)
        context.token.set(Cell.LISTED, value, context.address)

    return rule


def _transfer_ownership(context: CallContext) -> None:
    context.require(context.address != context.owner, TokenFailure.ALREADY_THE_OWNER)
    context.token.set(Cell.OWNER, context.address)


# Any holder may transfer; every other function is the owner's.
OWNERS = frozenset(Function) - {Function.TRANSFER}

RULES: Mapping[Function, Callable[[CallContext], None]] = {
    Function.INIT: _init,
    Function.TRANSFER: _transfer,
    Function.MINT: _mint,
    Function.BURN: _burn,
    Function.PAUSE: _switch(Cell.PAUSED, 1, TokenFailure.PAUSED),
    Function.UNPAUSE: _switch(Cell.PAUSED, 0, TokenFailure.NOT_PAUSED),
    Function.TRANSFER_OWNERSHIP: _transfer_ownership,
    Function.ENABLE_WHITELIST: _switch(Cell.WHITELIST, 1, TokenFailure.WHITELIST_ALREADY_ON),
    Function.DISABLE_WHITELIST: _switch(Cell.WHITELIST, 0, TokenFailure.WHITELIST_ALREADY_OFF),
    Function.ADD_TO_WHITELIST: _list(1, TokenFailure.ALREADY_LISTED),
    Function.REMOVE_FROM_WHITELIST: _list(0, TokenFailure.NOT_LISTED),
}
