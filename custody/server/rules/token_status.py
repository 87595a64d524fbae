"""The status of a token or of a call on it, computed from its proposals and the chain's index, never stored
(ADR 22).
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeVar

from custody.schemas.asset_tokens import CallStatus, ContractStatus
from custody.schemas.proposals import ProposalStatus as Proposal
from multisig.tokens.machine import TokenFailure

# Of a call that would have no effect, and of one that was mined without.
_WORDS: Final[Mapping[TokenFailure, str]] = {
    TokenFailure.MALFORMED: "Its data cannot be read.",
    TokenFailure.ALREADY_DEPLOYED: "The token was deployed before.",
    TokenFailure.NOT_ITS_BYTECODE: "The deployment is not of the bytecode that it names.",
    TokenFailure.NOT_THE_FIRST_OWNER: "The deployment does not come from the owner that the bytecode names.",
    TokenFailure.UNKNOWN_CONTRACT: "The token is not on the chain.",
    TokenFailure.NOT_THE_OWNER: "Only the token's owner may do this, and this vault is not.",
    TokenFailure.TOO_EARLY: "The deployment has no confirmation in an earlier block.",
    TokenFailure.ALREADY_STARTED: "The token was started already: init runs once.",
    TokenFailure.NOT_STARTED: "The token was not started: init comes first.",
    TokenFailure.PAUSED: "The token is paused: nothing is transferred until it is unpaused.",
    TokenFailure.NOT_PAUSED: "The token is not paused.",
    TokenFailure.NOT_LISTED: "The address is not on the token's whitelist.",
    TokenFailure.ALREADY_LISTED: "The address is on the token's whitelist already.",
    TokenFailure.OWNER_IS_LISTED: "The owner is always listed: nothing adds or removes it.",
    TokenFailure.WHITELIST_ALREADY_ON: "The whitelist is on already.",
    TokenFailure.WHITELIST_ALREADY_OFF: "The whitelist is off already.",
    TokenFailure.INSUFFICIENT_BALANCE: "The vault holds less of the token than that.",
    TokenFailure.ABOVE_MAXIMUM: "With that amount more would exist than the token's maximum supply.",
    TokenFailure.NOT_THE_OWNERS_ADDRESS: "The owner burns from its own address only: name the vault's.",
    TokenFailure.ALREADY_THE_OWNER: "The address is the token's owner already.",
}


def failure_words(failure: TokenFailure) -> str:
    return _WORDS[failure]


def words_of(stored: str | None) -> str:
    """The sentence for a failed rule, with its name as the index stores it, which programs look for."""
    assert stored is not None, "a transaction without effect has a stored reason"
    return f"It was mined without effect: {failure_words(TokenFailure(stored))} ({stored})"


class Mined(Enum):
    """The index's entry for the transaction, in the block in which its proposal is confirmed."""

    # The index has not read that block yet, or has read another branch: the effect is unknown.
    UNREAD = "unread"
    EFFECTIVE = "effective"
    WITHOUT_EFFECT = "without effect"


# While the proposal is not confirmed. A call is broadcasting while any version of it is on the network: a
# replaced one may still be mined. A finalised transaction that was not sent yet has reached no node.
_BY_PROPOSAL: Final[Mapping[Proposal, CallStatus]] = {
    Proposal.PENDING: CallStatus.PENDING,
    Proposal.SIGNED: CallStatus.PENDING,
    Proposal.STALLED: CallStatus.STALLED,
    Proposal.BROADCASTING: CallStatus.BROADCASTING,
    Proposal.REPLACED: CallStatus.BROADCASTING,
    Proposal.REJECTED: CallStatus.FAILED,
    Proposal.CANCELLED: CallStatus.FAILED,
    Proposal.EXPIRED: CallStatus.FAILED,
    Proposal.INVALIDATED: CallStatus.FAILED,
    Proposal.FAILED: CallStatus.FAILED,
}
# Once the proposal is confirmed: a mined transaction without effect has failed.
_BY_INDEX: Final[Mapping[Mined, CallStatus]] = {
    Mined.UNREAD: CallStatus.BROADCASTING,
    Mined.EFFECTIVE: CallStatus.CONFIRMED,
    Mined.WITHOUT_EFFECT: CallStatus.FAILED,
}
TABLE: Final[Mapping[tuple[Proposal, Mined], CallStatus]] = {
    (status, mined): _BY_INDEX[mined] if status is Proposal.CONFIRMED else _BY_PROPOSAL[status]
    # A proof neither creates nor calls a token.
    for status in set(Proposal) - {Proposal.PROVEN}
    for mined in Mined
}
# A token's record has no status for a stalled broadcast: it is still pending.
_OF_CONTRACT: Final[Mapping[CallStatus, ContractStatus]] = {
    CallStatus.PENDING: ContractStatus.PENDING,
    CallStatus.STALLED: ContractStatus.PENDING,
    CallStatus.BROADCASTING: ContractStatus.BROADCASTING,
    CallStatus.CONFIRMED: ContractStatus.CONFIRMED,
    CallStatus.FAILED: ContractStatus.FAILED,
}
# Of several versions of one transaction the most advanced decides; an ended one only where all have ended.
_PRECEDENCE: Final = (
    Proposal.CONFIRMED,
    Proposal.BROADCASTING,
    Proposal.REPLACED,
    Proposal.SIGNED,
    Proposal.STALLED,
    Proposal.PENDING,
)
_ENDED_WORDS: Final[Mapping[Proposal, str]] = {
    Proposal.REJECTED: "Too many signers declined: the others are too few.",
    Proposal.CANCELLED: "It was cancelled.",
    Proposal.EXPIRED: "It expired before enough signers had approved.",
    Proposal.INVALIDATED: "Another transaction spent a coin of it.",
    Proposal.FAILED: "The network refused it for good.",
}
TAKEN_BACK: Final = "It was taken back: its coins returned to the vault."


class FamilyMember(Protocol):
    """One proposal of a family. ``carries``: whether it has the token's data; one that cancels the
    payment has none.
    """

    @property
    def status(self) -> Proposal: ...
    @property
    def carries(self) -> bool: ...
    @property
    def failure_reason(self) -> str | None: ...


M = TypeVar("M", bound=FamilyMember)


class CallVerdict(NamedTuple):
    """``reason``: why it is FAILED, else None."""

    status: CallStatus
    reason: str | None


def best_of(members: Sequence[M]) -> M:
    """The member whose status is the family's. ``members``: all of them, the oldest first; among equals the
    newer one is taken.
    """
    carrying = [member for member in members if member.carries] or list(members)
    for status in _PRECEDENCE:
        found = [member for member in carrying if member.status is status]
        if found:
            return found[-1]
    return carrying[-1]


def verdict(members: Sequence[FamilyMember], mined: Mined, failure: str | None = None) -> CallVerdict:
    """``mined`` and ``failure`` (the failed rule, as the index stores it) belong to `best_of` the members;
    they count only where it is confirmed.
    """
    best = best_of(members)
    status = TABLE[best.status, mined]
    return CallVerdict(status, _reason(members, best, failure) if status is CallStatus.FAILED else None)


def contract_status(status: CallStatus) -> ContractStatus:
    return _OF_CONTRACT[status]


def _reason(members: Sequence[FamilyMember], best: FamilyMember, failure: str | None) -> str:
    if best.status is Proposal.CONFIRMED:
        return words_of(failure)
    if any(member.status is Proposal.CONFIRMED and not member.carries for member in members):
        return TAKEN_BACK
    return best.failure_reason or _ENDED_WORDS[best.status]
