"""The rules of CPT-1 in words: why a transaction has no effect on its token."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from multisig.tokens.machine import Failure

_WORDS: Final[Mapping[Failure, str]] = MappingProxyType(
    {
        Failure.MALFORMED: "Its data cannot be read.",
        Failure.ALREADY_DEPLOYED: "The token was deployed before.",
        Failure.NOT_ITS_BYTECODE: "The deployment is not of the bytecode that it names.",
        Failure.NOT_THE_FIRST_OWNER: "The deployment does not come from the owner that the bytecode names.",
        Failure.UNKNOWN_CONTRACT: "No deployment before it made such a token.",
        Failure.NOT_THE_OWNER: "Whoever called does not own the token.",
        Failure.TOO_EARLY: "The deployment was not confirmed in an earlier block.",
        Failure.ALREADY_STARTED: "The token was started already.",
        Failure.NOT_STARTED: "The token was not started: init comes first.",
        Failure.PAUSED: "The token is paused.",
        Failure.NOT_PAUSED: "The token is not paused.",
        Failure.NOT_LISTED: "The address is not on the token's whitelist.",
        Failure.ALREADY_LISTED: "The address is on the token's whitelist already.",
        Failure.OWNER_IS_LISTED: "The owner may always receive, and is never listed.",
        Failure.WHITELIST_ALREADY_ON: "The whitelist is on already.",
        Failure.WHITELIST_ALREADY_OFF: "The whitelist is off already.",
        Failure.INSUFFICIENT_BALANCE: "The balance is too small.",
        Failure.ABOVE_MAXIMUM: "The supply would rise above the token's maximum.",
        Failure.NOT_THE_OWNERS_ADDRESS: "Only what the owner's own address holds can be burned.",
        Failure.ALREADY_THE_OWNER: "The address owns the token already.",
    }
)


def failure_words(failure: Failure) -> str:
    return _WORDS[failure]


def words_of(stored: str | None) -> str:
    """Of a rule's name, as the index stores it: the sentence, with the name that programs look for."""
    assert stored is not None, "what had no effect has its reason beside it"
    return f"It was mined without effect: {failure_words(Failure(stored))} ({stored})"
