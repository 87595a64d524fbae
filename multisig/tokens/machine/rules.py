"""What each function does, and when it does nothing: one rule for each, in one table ("What
calls do" in docs/understand/tokens.md).

A rule reads and writes one token. It raises `NoEffect` with the reason, and then nothing at all has changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from multisig.tokens.bytecode import Bytecode
from multisig.tokens.machine.state import Cell, Writer
from multisig.tokens.payload import Call, Function


@unique
class Failure(StrEnum):
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

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call as its rule sees it: `caller` is the output script that input 0 spends, `height` that of its
    block.
    """

    call: Call
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

    def require(self, holds: bool, failure: Failure) -> None:
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
        self.require(balance >= amount, Failure.INSUFFICIENT_BALANCE)
        self.token.set(Cell.BALANCE, balance - amount, holder)


def run(turn: CallContext) -> None:
    """Raises NoEffect."""
    function, token = turn.call.function, turn.token
    turn.require(function not in OWNERS or turn.caller == turn.owner, Failure.NOT_THE_OWNER)
    started = bool(token.number(Cell.STARTED))
    turn.require(started or function is Function.INIT, Failure.NOT_STARTED)
    RULES[function](turn)


def _init(turn: CallContext) -> None:
    turn.require(not turn.token.number(Cell.STARTED), Failure.ALREADY_STARTED)
    # A deployment in the same block has no confirmation yet when this call enters it.
    turn.require(turn.token.number(Cell.DEPLOYED) < turn.height, Failure.TOO_EARLY)
    turn.token.set(Cell.STARTED, 1)
    turn.token.set(Cell.SUPPLY, turn.bytecode.total_supply)
    turn.add(turn.owner, turn.bytecode.total_supply)


def _transfer(turn: CallContext) -> None:
    turn.require(not turn.token.number(Cell.PAUSED), Failure.PAUSED)
    turn.require(turn.may_receive(turn.address), Failure.NOT_LISTED)
    turn.take(turn.caller, turn.amount)
    turn.add(turn.address, turn.amount)


def _mint(turn: CallContext) -> None:
    supply = turn.token.number(Cell.SUPPLY) + turn.amount
    turn.require(supply <= turn.bytecode.max_supply, Failure.ABOVE_MAXIMUM)
    turn.require(turn.may_receive(turn.address), Failure.NOT_LISTED)
    turn.token.set(Cell.SUPPLY, supply)
    turn.add(turn.address, turn.amount)


def _burn(turn: CallContext) -> None:
    turn.require(turn.address == turn.owner, Failure.NOT_THE_OWNERS_ADDRESS)
    turn.take(turn.owner, turn.amount)
    turn.token.set(Cell.SUPPLY, turn.token.number(Cell.SUPPLY) - turn.amount)


def _pause(turn: CallContext) -> None:
    turn.require(not turn.token.number(Cell.PAUSED), Failure.PAUSED)
    turn.token.set(Cell.PAUSED, 1)


def _unpause(turn: CallContext) -> None:
    turn.require(bool(turn.token.number(Cell.PAUSED)), Failure.NOT_PAUSED)
    turn.token.set(Cell.PAUSED, 0)


def _transfer_ownership(turn: CallContext) -> None:
    turn.require(turn.address != turn.owner, Failure.ALREADY_THE_OWNER)
    turn.token.set(Cell.OWNER, turn.address)


def _enable_whitelist(turn: CallContext) -> None:
    turn.require(not turn.token.number(Cell.WHITELIST), Failure.WHITELIST_ALREADY_ON)
    turn.token.set(Cell.WHITELIST, 1)


def _disable_whitelist(turn: CallContext) -> None:
    turn.require(bool(turn.token.number(Cell.WHITELIST)), Failure.WHITELIST_ALREADY_OFF)
    turn.token.set(Cell.WHITELIST, 0)


def _add_to_whitelist(turn: CallContext) -> None:
    turn.require(turn.address != turn.owner, Failure.OWNER_IS_LISTED)
    turn.require(not turn.token.number(Cell.LISTED, turn.address), Failure.ALREADY_LISTED)
    turn.token.set(Cell.LISTED, 1, turn.address)


def _remove_from_whitelist(turn: CallContext) -> None:
    turn.require(turn.address != turn.owner, Failure.OWNER_IS_LISTED)
    turn.require(bool(turn.token.number(Cell.LISTED, turn.address)), Failure.NOT_LISTED)
    turn.token.set(Cell.LISTED, 0, turn.address)


# Any holder may transfer; every other function is the owner's.
OWNERS = frozenset(Function) - {Function.TRANSFER}

RULES: Mapping[Function, Callable[[CallContext], None]] = MappingProxyType(
    {
        Function.INIT: _init,
        Function.TRANSFER: _transfer,
        Function.MINT: _mint,
        Function.BURN: _burn,
        Function.PAUSE: _pause,
        Function.UNPAUSE: _unpause,
        Function.TRANSFER_OWNERSHIP: _transfer_ownership,
        Function.ENABLE_WHITELIST: _enable_whitelist,
        Function.DISABLE_WHITELIST: _disable_whitelist,
        Function.ADD_TO_WHITELIST: _add_to_whitelist,
        Function.REMOVE_FROM_WHITELIST: _remove_from_whitelist,
    }
)
