"""The states of a proposal on this machine: one table, (state, move) → state; and their sentences.

A state in which a signature may exist (signing and later) never leads back to *waiting for the person* except
through *interrupted*, when a device returned nothing. *signed* and later never lead to *signing*: there is
one stored signature for each proposal. What was *exported* for a device without a cable may be signed: it
never goes back to the person or to another device.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from signerd.errors import IllegalEvent


class State(StrEnum):
    """``words``: the sentence for the person."""

    def __new__(cls, value: str, words: str = "") -> Self:
        made = str.__new__(cls, value)
        made._value_, made.words = value, words
        return made

    words: str

    RECEIVED = "received", "received"
    REFUSED = "refused", "refused by a check here"
    WAITING_PERSON = "waiting-for-person", "waits for your decision"
    WAITING_DEVICE = "waiting-for-device", "approved, waits for your device"
    EXPORTED = "exported", "exported: it may be signed; import the answer"
    SIGNING = "signing", "your device is asked"
    SIGNED = "signed", "signed, not submitted yet"
    SUBMITTING = "submitting", "being submitted"
    # The reason goes on with why, and with what happens next.
    KEPT = "kept", "signed and kept"
    SUBMITTED = "submitted", "the platform has your signature"
    HANDED_OVER = "handed-over", "signed, and ready for the program that imported it"
    BROADCAST = "broadcast", "it is out of your hands: complete, or on the network"
    CONFIRMED = "confirmed", "confirmed"
    DECLINED = "declined", "declined"
    INTERRUPTED = "interrupted", "no signature came; you may approve it again"
    QUARANTINED = "quarantined", "set aside: something is wrong with it"
    EXPIRED = "expired", "expired"
    SUPERSEDED = "superseded", "replaced by another proposal"
    # By the platform, whose word is shown; by the program that imported it; or its signature stays here.
    WITHDRAWN = "withdrawn", "ended"


# How the reason begins where nobody knows whether the device signed.
STOPPED = "signerd was stopped"


class ProposalMove(StrEnum):
    """The inputs of the table. The events with the details are in ``events``."""

    ALLOW = "allow"
    REFUSE = "refuse"
    RECONSIDER = "reconsider"
    ALTERED = "altered"
    APPROVE = "approve"
    DECLINE = "decline"
    EXPORT = "export"
    ANSWERED = "answered"
    ASK_DEVICE = "ask-device"
    DEVICE_NOT_READY = "device-not-ready"
    DEVICE_FAILED = "device-failed"
    VERIFIED = "verified"
    HAND_OVER = "hand-over"
    SUBMIT = "submit"
    ACCEPTED = "accepted"
    UNDELIVERED = "undelivered"
    KEEP = "keep"
    TURNED_DOWN = "turned-down"
    RESTARTED = "restarted"
    RECALL = "recall"
    RECALL_PART = "recall-part"
    WENT_OUT = "went-out"
    CONFIRM = "confirm"
    EXPIRE = "expire"
    SUPERSEDE = "supersede"
    WITHDRAW = "withdraw"


S = State
M = ProposalMove

# Before a device was asked: the platform's state may still change everything.
UNDECIDED = (S.RECEIVED, S.REFUSED, S.WAITING_PERSON, S.WAITING_DEVICE, S.INTERRUPTED)
# States in which the platform's status is followed. Ends are not final: a signed transaction may confirm
# later, and a reorganisation may undo a confirmation.
# While a device is being asked, it is applied only after the answer.
FOLLOWING = tuple(state for state in State if state not in {S.SIGNING, S.HANDED_OVER})
# Signed and to be submitted; and, with SUBMITTING, signed and not known to be with the platform.
TO_SUBMIT = (S.SIGNED, S.KEPT)
NOT_TAKEN = (*TO_SUBMIT, S.SUBMITTING)
# The person may still decline. After the platform has the signature, declining has no effect.
DECLINABLE = (*UNDECIDED[1:], S.EXPORTED, *NOT_TAKEN, S.QUARANTINED)


def _rows(states: Iterable[State], move: ProposalMove, to: State) -> dict[tuple[State, ProposalMove], State]:
    return {(state, move): to for state in states if state is not to}


TABLE: Mapping[tuple[State, ProposalMove], State] = MappingProxyType(
    {
        (S.RECEIVED, M.ALLOW): S.WAITING_PERSON,
        (S.RECEIVED, M.REFUSE): S.REFUSED,
        **_rows((S.REFUSED, S.WAITING_PERSON, S.WAITING_DEVICE, S.INTERRUPTED), M.RECONSIDER, S.RECEIVED),
        **_rows((*UNDECIDED, S.EXPORTED), M.ALTERED, S.QUARANTINED),
        **_rows((S.WAITING_PERSON, S.INTERRUPTED), M.APPROVE, S.WAITING_DEVICE),
        **_rows(DECLINABLE, M.DECLINE, S.DECLINED),
        (S.WAITING_DEVICE, M.EXPORT): S.EXPORTED,
        # A repeated export; and a new approval of what has changed since the export.
        (S.EXPORTED, M.EXPORT): S.EXPORTED,
        (S.EXPORTED, M.APPROVE): S.EXPORTED,
        (S.EXPORTED, M.ANSWERED): S.SIGNED,
        (S.WAITING_DEVICE, M.ASK_DEVICE): S.SIGNING,
        (S.SIGNING, M.VERIFIED): S.SIGNED,
        (S.SIGNING, M.DEVICE_NOT_READY): S.WAITING_DEVICE,
        (S.SIGNING, M.DEVICE_FAILED): S.INTERRUPTED,
        (S.SIGNING, M.RESTARTED): S.INTERRUPTED,
        (S.SIGNED, M.HAND_OVER): S.HANDED_OVER,
        (S.SIGNED, M.SUBMIT): S.SUBMITTING,
        (S.SUBMITTING, M.ACCEPTED): S.SUBMITTED,
        (S.SUBMITTING, M.UNDELIVERED): S.SIGNED,
        (S.SUBMITTING, M.TURNED_DOWN): S.QUARANTINED,
        (S.SUBMITTING, M.RESTARTED): S.SIGNED,
        # A kept signature may be submitted at any time; only a new answer changes the state.
        (S.SUBMITTING, M.KEEP): S.KEPT,
        (S.KEPT, M.KEEP): S.KEPT,
        (S.KEPT, M.ACCEPTED): S.SUBMITTED,
        (S.KEPT, M.TURNED_DOWN): S.QUARANTINED,
        # It was being submitted when it was declined, withdrawn or shown as ended.
        **_rows((S.DECLINED, S.WITHDRAWN, S.EXPIRED, S.SUPERSEDED), M.ACCEPTED, S.SUBMITTED),
        # A restored journal: the platform has our signature, which the journal does not.
        **_rows((*UNDECIDED, S.EXPORTED, S.QUARANTINED, S.DECLINED), M.RECALL, S.SUBMITTED),
        # The same with signatures of some inputs only.
        **_rows((*UNDECIDED, S.EXPORTED, S.DECLINED), M.RECALL_PART, S.QUARANTINED),
        **_rows(FOLLOWING, M.WENT_OUT, S.BROADCAST),
        **_rows(FOLLOWING, M.CONFIRM, S.CONFIRMED),
        **_rows(FOLLOWING, M.EXPIRE, S.EXPIRED),
        **_rows(FOLLOWING, M.SUPERSEDE, S.SUPERSEDED),
        **_rows(FOLLOWING, M.WITHDRAW, S.WITHDRAWN),
    }
)

# States in which our signature may have left this machine, and the transaction may confirm.
DECIDED_YES = frozenset(
    {S.EXPORTED, S.SIGNED, S.HANDED_OVER, S.SUBMITTING, S.KEPT, S.SUBMITTED, S.BROADCAST, S.CONFIRMED}
)


def advance(state: State, move: ProposalMove) -> State:
    """The state after ``move``. Raises IllegalEvent, and nothing has changed, where the table has no row."""
    after = TABLE.get((state, move))
    if after is None:
        raise IllegalEvent(f"a proposal that is {state} cannot take '{move}'")
    return after


# Approved, and no device asked; the person is asked; between the approval and the platform; after it.
APPROVED = frozenset({"waiting-for-device", "exported"})
ASKED = frozenset({"waiting-for-person", "interrupted"})
ON_THE_WAY = frozenset({"waiting-for-device", "exported", "signing", "signed", "submitting", "kept"})
DELIVERED = frozenset({"submitted", "handed-over", "broadcast", "confirmed"})


# Labels for the platform's kinds of movements; an unknown kind is shown as it is.
MOVEMENTS = {
    "deposit": "Deposit",
    "forward": "Forward into the vault",
    "payment": "Payment",
    "consolidation": "Moved within the vault",
    "token": "Token transaction",
    "outside": "Spent, and never proposed on the platform",
}


# Where a quorum is from. The platform's record must agree with it.
RECORD = "record"
SOURCES = {RECORD: "the platform's record", "file": "your file", "psbt": "the PSBT"}


def movement_words(kind: str) -> str:
    return MOVEMENTS.get(kind, kind)


def network_words(network: str) -> str:
    return (
        "MAINNET: real bitcoin" if network == "mainnet" else f"{network.upper()}: test coins, no real bitcoin"
    )


def state_words(state: str) -> str:
    """Of a state that this version does not know, the state itself."""
    return next((known.words for known in State if known == state), state)
