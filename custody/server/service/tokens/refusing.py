"""What is answered where a call could only fail: the rule that it would break, in words, by one table (docs/tokens.md)."""

from collections.abc import Mapping
from types import MappingProxyType

from custody.server.domain.errors import (
    AlreadyPaused,
    CustodyError,
    DeploymentNotConfirmed,
    Fault,
    InsufficientFunds,
    Invalid,
    LockedFunds,
    NotPaused,
    StateConflict,
)
from custody.server.service.tokens.arguments import AMOUNT, Asked
from multisig.tokens import Function
from multisig.tokens.machine import Failure

CALLER, ADDRESS_AT, STATE = "/wallet_id", "address", ""

_Answer = tuple[type[CustodyError], str, str]
_ANSWERS: Mapping[Failure, _Answer] = MappingProxyType(
    {
        Failure.UNKNOWN_CONTRACT: (DeploymentNotConfirmed, STATE, "The token is not on the chain."),
        Failure.NOT_THE_OWNER: (
            Invalid,
            CALLER,
            "Only the token's owner may do this, and this vault is not.",
        ),
        Failure.TOO_EARLY: (DeploymentNotConfirmed, STATE, "The deployment has no confirmation yet."),
        Failure.ALREADY_STARTED: (StateConflict, STATE, "The token was started already: init runs once."),
        Failure.NOT_STARTED: (StateConflict, STATE, "The token was not started: call init first."),
        Failure.PAUSED: (
            StateConflict,
            STATE,
            "The token is paused: nothing is transferred until it is unpaused.",
        ),
        Failure.NOT_PAUSED: (NotPaused, STATE, "The token is not paused."),
        Failure.NOT_LISTED: (Invalid, ADDRESS_AT, "The address is not on the token's whitelist."),
        Failure.ALREADY_LISTED: (Invalid, ADDRESS_AT, "The address is on the token's whitelist already."),
        Failure.OWNER_IS_LISTED: (
            Invalid,
            ADDRESS_AT,
            "The owner is always listed: nothing adds or removes it.",
        ),
        Failure.WHITELIST_ALREADY_ON: (StateConflict, STATE, "The whitelist is on already."),
        Failure.WHITELIST_ALREADY_OFF: (StateConflict, STATE, "The whitelist is off already."),
        Failure.INSUFFICIENT_BALANCE: (
            InsufficientFunds,
            AMOUNT,
            "The vault holds less of the token than that.",
        ),
        Failure.ABOVE_MAXIMUM: (
            Invalid,
            AMOUNT,
            "With that amount more would exist than the token's maximum supply.",
        ),
        Failure.NOT_THE_OWNERS_ADDRESS: (
            Invalid,
            ADDRESS_AT,
            "The owner burns from its own address only: name the vault's.",
        ),
        Failure.ALREADY_THE_OWNER: (Invalid, ADDRESS_AT, "The address is the token's owner already."),
    }
)


def _calls(count: int) -> str:
    return "one call" if count == 1 else f"{count} calls"


def refusal(failure: Failure, asked: Asked, *, waiting: int) -> CustodyError:
    """``waiting``: so many calls wait before it, without which it would have passed; 0 where it fails without them too."""
    kind, where, sentence = _ANSWERS[failure]
    if failure is Failure.PAUSED and asked.function is Function.PAUSE:
        kind, sentence = AlreadyPaused, "The token is paused already."
    if waiting:
        sentence = f"{sentence} So it will be once what waits before it is mined: {_calls(waiting)}."
        if failure is Failure.INSUFFICIENT_BALANCE:
            kind = LockedFunds
            sentence = f"The rest is reserved by what waits before it: {_calls(waiting)}."
    pointer = asked.address_at if where == ADDRESS_AT else where
    return kind(sentence, faults=(Fault(pointer, sentence, failure.value),))
