"""The one thing that a Coldcard asks its person about at a time, and what became of it.

It outlives the connection: a new handshake leaves it alone, and the host that asks next collects the outcome. Source: Coldcard
firmware 5.4.5 and 5.6.1, `shared/auth.py`, `UserAuthorizedAction`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from device_simulators.coldcard.errors import IllegalStep, PromptOpen


class Kind(StrEnum):
    TRANSACTION = "transaction"
    TEXT = "text"
    ENROLMENT = "enrolment"
    ADDRESS = "address"
    SCRIPT_ADDRESS = "script-address"


class State(StrEnum):
    NONE = "none"
    ASKING = "asking"
    READY = "ready"
    REFUSED = "refused"
    FAILED = "failed"


class Event(StrEnum):
    BEGIN = "begin"
    FINISH = "finish"
    REFUSE = "refuse"
    FAIL = "fail"
    COLLECT = "collect"
    DISCARD = "discard"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.NONE, Event.BEGIN): State.ASKING,
    (State.READY, Event.BEGIN): State.ASKING,  # nobody came for the last outcome
    (State.REFUSED, Event.BEGIN): State.ASKING,
    (State.FAILED, Event.BEGIN): State.ASKING,
    (State.ASKING, Event.FINISH): State.READY,
    (State.ASKING, Event.REFUSE): State.REFUSED,
    (State.ASKING, Event.FAIL): State.FAILED,
    (State.READY, Event.COLLECT): State.NONE,
    (State.REFUSED, Event.COLLECT): State.NONE,
    (State.FAILED, Event.COLLECT): State.NONE,
    **{(state, Event.DISCARD): State.NONE for state in State},
}

# What a new request may replace while the person is still being asked; anything else is told "busy". That an
# enrolment or a plain address throws away an open signing prompt is the firmware's own habit.
REPLACES: dict[Kind, frozenset[Kind]] = {
    Kind.TRANSACTION: frozenset({Kind.TRANSACTION}),
    Kind.TEXT: frozenset(),
    Kind.ENROLMENT: frozenset(Kind),
    Kind.ADDRESS: frozenset(Kind),
    Kind.SCRIPT_ADDRESS: frozenset({Kind.ADDRESS, Kind.SCRIPT_ADDRESS}),
}
# A signed transaction keeps the screen ("PSBT Signed") until a key is pressed: before its result is collected, it makes others
# wait as an open question does.
HOLDS_SCREEN: frozenset[tuple[State, Kind]] = frozenset({(State.READY, Kind.TRANSACTION)})


@dataclass(frozen=True)
class Closing:
    """What the screen says for some seconds after an answer. `wipes`: at its end the device forgets its active request."""

    word: str
    seconds: float
    wipes: bool


# `ux_dramatic_pause` in `ApproveTransaction` and `NewEnrollRequest`; the latter ends in `UserAuthorizedAction.cleanup`.
AFTER_NO: dict[Kind, Closing] = {
    Kind.TRANSACTION: Closing("Refused.", 1.0, wipes=False),
    Kind.ENROLMENT: Closing("Refused.", 2.0, wipes=True),
}
SAVED = Closing("Saved.", 2.0, wipes=True)


@dataclass(frozen=True)
class Pending:
    """`reply` is what the collecting command answers once READY; `reason` the sentence once FAILED."""

    state: State = State.NONE
    kind: Kind | None = None
    reply: bytes = b""
    reason: str = ""

    def begin(self, kind: Kind) -> "Pending":
        """Start asking. Raises PromptOpen while something else is being asked that this may not replace."""
        if not self.gives_way_to(REPLACES[kind]):
            raise PromptOpen(f"the device is still asking about: {self.kind}")
        before = State.NONE if self.state is State.ASKING else self.state
        return Pending(TRANSITIONS[before, Event.BEGIN], kind)

    def gives_way_to(self, replaced: frozenset[Kind]) -> bool:
        """Whether the screen is free for what replaces these kinds of requests."""
        held = self.state is State.ASKING or (self.state, self.kind) in HOLDS_SCREEN
        return not held or self.kind in replaced

    def finish(self, reply: bytes) -> "Pending":
        return replace(self._step(Event.FINISH), reply=reply)

    def refuse(self) -> "Pending":
        return self._step(Event.REFUSE)

    def fail(self, reason: str) -> "Pending":
        return replace(self._step(Event.FAIL), reason=reason)

    def collect(self) -> "Pending":
        return Pending(self._step(Event.COLLECT).state)

    def discard(self) -> "Pending":
        return Pending(self._step(Event.DISCARD).state)

    def _step(self, event: Event) -> "Pending":
        try:
            return replace(self, state=TRANSITIONS[self.state, event])
        except KeyError:
            raise IllegalStep(f"{event} while {self.state}") from None
