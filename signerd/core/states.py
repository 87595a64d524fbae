"""The life of one proposal as this signer sees it: one table, (state, event) → state; and the states in
words.

There is no way from a state in which a signature may exist (signing and later) back to *waiting for the
person* except through *interrupted*, which only a device that returned nothing leads to. From *signed* on
there is no way to *signing* at all: one proposal, one stored signature. What was *exported* for a device
without a cable may be signed for good: it never goes back to the person or to a device.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from signerd.errors import IllegalEvent


class State(StrEnum):
    RECEIVED = "received"
    INSPECTED = "inspected"
    REFUSED = "refused"
    WAITING_PERSON = "waiting-for-person"
    WAITING_DEVICE = "waiting-for-device"
    EXPORTED = "exported"
    SIGNING = "signing"
    VERIFYING = "verifying"
    SIGNED = "signed"
    SUBMITTING = "submitting"
    KEPT = "kept"
    SUBMITTED = "submitted"
    HANDED_OVER = "handed-over"
    BROADCAST = "broadcast"
    CONFIRMED = "confirmed"
    DECLINED = "declined"
    INTERRUPTED = "interrupted"
    QUARANTINED = "quarantined"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


class Move(StrEnum):
    """What happened, as the table knows it. The events that carry the details are in ``events``."""

    INSPECT = "inspect"
    ALLOW = "allow"
    REFUSE = "refuse"
    RECONSIDER = "reconsider"
    ALTERED = "altered"
    APPROVE = "approve"
    DECLINE = "decline"
    EXPORT = "export"
    ANSWERED = "answered"
    ASK_DEVICE = "ask-device"
    DEVICE_RETURNED = "device-returned"
    DEVICE_NOT_READY = "device-not-ready"
    DEVICE_FAILED = "device-failed"
    VERIFIED = "verified"
    VERIFY_FAILED = "verify-failed"
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
M = Move

# Before any device was asked: what the platform says may still change everything.
UNDECIDED = (S.RECEIVED, S.INSPECTED, S.REFUSED, S.WAITING_PERSON, S.WAITING_DEVICE, S.INTERRUPTED)
# While a device works the platform's word waits: the record takes it up when the device has answered.
AT_THE_DEVICE = (S.SIGNING, S.VERIFYING)
# Where the platform's word about the proposal's end moves us. Ends are soft: a transaction whose signatures
# are out may confirm whatever was said before, and a reorganisation takes a confirmation back. The platform
# tells nothing of an imported PSBT that was handed over.
FOLLOWING = tuple(state for state in State if state not in {*AT_THE_DEVICE, S.HANDED_OVER})
# Signed, and to be submitted; and with what is on its way, not with the platform as far as is known.
TO_SUBMIT = (S.SIGNED, S.KEPT)
NOT_TAKEN = (*TO_SUBMIT, S.SUBMITTING)
# The person may still say no. After the platform took a signature, a no changes nothing.
DECLINABLE = (*UNDECIDED[2:], S.EXPORTED, *NOT_TAKEN, S.QUARANTINED)


def _rows(states: Iterable[State], move: Move, to: State) -> dict[tuple[State, Move], State]:
    return {(state, move): to for state in states if state is not to}


TABLE: Mapping[tuple[State, Move], State] = MappingProxyType(
    {
        (S.RECEIVED, M.INSPECT): S.INSPECTED,
        (S.RECEIVED, M.REFUSE): S.REFUSED,
        (S.INSPECTED, M.ALLOW): S.WAITING_PERSON,
        (S.INSPECTED, M.REFUSE): S.REFUSED,
        **_rows((S.REFUSED, S.WAITING_PERSON, S.WAITING_DEVICE, S.INTERRUPTED), M.RECONSIDER, S.RECEIVED),
        **_rows((*UNDECIDED, S.EXPORTED), M.ALTERED, S.QUARANTINED),
        (S.WAITING_PERSON, M.APPROVE): S.WAITING_DEVICE,
        (S.INTERRUPTED, M.APPROVE): S.WAITING_DEVICE,
        **_rows(DECLINABLE, M.DECLINE, S.DECLINED),
        (S.WAITING_DEVICE, M.EXPORT): S.EXPORTED,
        # The same bytes once more; and the person's yes to what it shows now, days after they were given out.
        (S.EXPORTED, M.EXPORT): S.EXPORTED,
        (S.EXPORTED, M.APPROVE): S.EXPORTED,
        (S.EXPORTED, M.ANSWERED): S.SIGNED,
        (S.WAITING_DEVICE, M.ASK_DEVICE): S.SIGNING,
        (S.SIGNING, M.DEVICE_RETURNED): S.VERIFYING,
        (S.SIGNING, M.DEVICE_NOT_READY): S.WAITING_DEVICE,
        (S.SIGNING, M.DEVICE_FAILED): S.INTERRUPTED,
        (S.SIGNING, M.RESTARTED): S.INTERRUPTED,
        (S.VERIFYING, M.VERIFIED): S.SIGNED,
        (S.VERIFYING, M.VERIFY_FAILED): S.INTERRUPTED,
        (S.VERIFYING, M.RESTARTED): S.INTERRUPTED,
        (S.SIGNED, M.HAND_OVER): S.HANDED_OVER,
        (S.SIGNED, M.SUBMIT): S.SUBMITTING,
        (S.SUBMITTING, M.ACCEPTED): S.SUBMITTED,
        (S.SUBMITTING, M.UNDELIVERED): S.SIGNED,
        (S.SUBMITTING, M.TURNED_DOWN): S.QUARANTINED,
        (S.SUBMITTING, M.RESTARTED): S.SIGNED,
        # What is kept may be submitted at any time: each further try changes nothing until its answer does.
        (S.SUBMITTING, M.KEEP): S.KEPT,
        (S.KEPT, M.KEEP): S.KEPT,
        (S.KEPT, M.ACCEPTED): S.SUBMITTED,
        (S.KEPT, M.TURNED_DOWN): S.QUARANTINED,
        # It was on its way when the person said no, when it was withdrawn here, or when the platform showed
        # it as over.
        **_rows((S.DECLINED, S.WITHDRAWN, S.EXPIRED, S.SUPERSEDED), M.ACCEPTED, S.SUBMITTED),
        # A restored journal: the platform has our signature, and this machine forgot it.
        **_rows((*UNDECIDED, S.EXPORTED, S.QUARANTINED, S.DECLINED), M.RECALL, S.SUBMITTED),
        # And some of it: it may be signed, and is not complete by what is shown.
        **_rows((*UNDECIDED, S.EXPORTED, S.DECLINED), M.RECALL_PART, S.QUARANTINED),
        **_rows(FOLLOWING, M.WENT_OUT, S.BROADCAST),
        **_rows(FOLLOWING, M.CONFIRM, S.CONFIRMED),
        **_rows(FOLLOWING, M.EXPIRE, S.EXPIRED),
        **_rows(FOLLOWING, M.SUPERSEDE, S.SUPERSEDED),
        **_rows(FOLLOWING, M.WITHDRAW, S.WITHDRAWN),
    }
)

# States in which a signature of ours may be out of this machine's hands and may yet confirm.
DECIDED_YES = frozenset(
    {S.EXPORTED, S.SIGNED, S.HANDED_OVER, S.SUBMITTING, S.KEPT, S.SUBMITTED, S.BROADCAST, S.CONFIRMED}
)


def advance(state: State, move: Move) -> State:
    """The state after ``move``. Raises IllegalEvent, and nothing has changed, where the table has no row."""
    after = TABLE.get((state, move))
    if after is None:
        raise IllegalEvent(f"a proposal that is {state} cannot take '{move}'")
    return after


# By State's values. What the person reads beside the reason.
STATES = {
    "received": "received",
    "inspected": "inspected",
    "refused": "refused by a check here",
    "waiting-for-person": "waits for your decision",
    "waiting-for-device": "approved, waits for your device",
    "exported": "exported: it may be signed; import the answer",
    "signing": "your device is asked",
    "verifying": "your device's answer is being checked",
    "signed": "signed, not submitted yet",
    "submitting": "being submitted",
    "kept": "signed and kept: the platform does not take it for now",
    "submitted": "the platform has your signature",
    "handed-over": "signed, and ready for the program that imported it",
    "broadcast": "out of your hands: complete, or on the network",
    "confirmed": "confirmed",
    "declined": "declined",
    "interrupted": "not signed; you may approve it again",
    "quarantined": "set aside: something is wrong with it",
    "expired": "expired",
    "superseded": "replaced by another proposal",
    "withdrawn": "withdrawn",
}
# The states in which the person is asked; those on the way from a yes to the platform; those in which it has
# arrived.
ASKED = frozenset({"waiting-for-person", "interrupted"})
ON_THE_WAY = frozenset(
    {"waiting-for-device", "exported", "signing", "verifying", "signed", "submitting", "kept"}
)
DELIVERED = frozenset({"submitted", "handed-over", "broadcast", "confirmed"})


# What a transaction is to a vault, by the platform's kinds; another kind is told as it is.
MOVEMENTS = {
    "deposit": "Deposit",
    "forward": "Forward into the vault",
    "payment": "Payment",
    "consolidation": "Moved within the vault",
    "token": "Token transaction",
    "outside": "Spent, and never proposed on the platform",
}


def movement_words(kind: str) -> str:
    return MOVEMENTS.get(kind, kind)


def network_words(network: str) -> str:
    return (
        "MAINNET: real bitcoin" if network == "mainnet" else f"{network.upper()}: test coins, no real bitcoin"
    )


class Line(Protocol):
    """Of a proposal. Both are None where it could not be judged."""

    @property
    def paid_sats(self) -> int | None: ...
    @property
    def fee_sats(self) -> int | None: ...


def is_proof(line: Line) -> bool:
    """The bytes prove that it is a message (BIP-322): it moves no money, and pays no fee."""
    return line.paid_sats is not None and line.fee_sats is None


def state_words(state: str, *, proof: bool = False) -> str:
    return "proven" if proof and state == State.CONFIRMED else STATES.get(state, state)
