"""Evacuations: who signs a replacement vault, in which order vaults are moved, and how far each one is."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

from custody.schemas.evacuations import EvacuationStage
from custody.schemas.proposals import ProposalStatus
from custody.server.domain.errors import StateConflict
from multisig.canonical_json import canonical_json


class State(StrEnum):
    PLANNED = "PLANNED"
    # Its replacement is there.
    REPLACED = "REPLACED"
    # Every coin that can be swept is in a proposal; that one's own status says the rest.
    PROPOSED = "PROPOSED"
    # Something refuses; `reason` says what.
    LEFT = "LEFT"


class Event(StrEnum):
    REPLACEMENT_MADE = "replacement-made"
    SWEEP_MADE = "sweep-made"
    NOTHING_MORE = "nothing-more"
    REFUSED = "refused"
    # A member asks for another sweep: coins came later, or the reason is gone.
    AGAIN = "again"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.PLANNED, Event.REPLACEMENT_MADE): State.REPLACED,
    (State.PLANNED, Event.REFUSED): State.LEFT,
    # One transaction takes so many coins: there may be more.
    (State.REPLACED, Event.SWEEP_MADE): State.REPLACED,
    (State.REPLACED, Event.NOTHING_MORE): State.PROPOSED,
    (State.REPLACED, Event.REFUSED): State.LEFT,
    (State.PROPOSED, Event.AGAIN): State.REPLACED,
    (State.LEFT, Event.AGAIN): State.REPLACED,
}

# How far the sweeps of a vault are, by the one that is least far. What is not here has ended.
STAGES: tuple[tuple[EvacuationStage, frozenset[ProposalStatus]], ...] = (
    ("awaiting-approval", frozenset({ProposalStatus.PENDING})),
    ("signed", frozenset({ProposalStatus.SIGNED, ProposalStatus.STALLED})),
    ("broadcast", frozenset({ProposalStatus.BROADCASTING})),
    ("confirmed", frozenset({ProposalStatus.CONFIRMED})),
)


def next_state(state: State, event: Event) -> State:
    """Raises StateConflict."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise StateConflict(f"A vault that is {state} takes no event {event}.") from None


def stage_of(state: State, sweeps: Collection[ProposalStatus], *, left_sats: int) -> EvacuationStage:
    """What is shown of a vault. ``sweeps``: the status of each of its sweeps, of the newest version.
    ``left_sats``: at the vault's addresses and in no proposal.
    """
    if state is not State.PROPOSED:
        return {State.PLANNED: "planned", State.REPLACED: "replaced", State.LEFT: "left"}[state]  # type: ignore[return-value]
    stage: EvacuationStage = next((stage for stage, statuses in STAGES if statuses & set(sweeps)), "ended")
    has_ended = any(all(status not in statuses for _, statuses in STAGES) for status in sweeps)
    # What a sweep that ended held is there still, unless another one took it.
    return "ended" if stage == "confirmed" and has_ended and left_sats else stage


class Place(NamedTuple):
    """A signer of the exposed vault."""

    user_id: int
    key_id: str


@dataclass(frozen=True)
class Candidate:
    """A member who may approve payments, with an active key that is not exposed. ``accounts``: how many
    vaults the key can still join.
    """

    user_id: int
    key_id: str
    accounts: int


class Seat(NamedTuple):
    """A signer of the replacement. ``instead_of``: whose place it was, where that is another member."""

    user_id: int
    key_id: str
    instead_of: int | None = None


@dataclass(frozen=True)
class Room:
    """By key, over a whole plan: ``free`` accounts, and in how many vaults that are still to be planned its
    holder stays. Those are not given away.
    """

    free: Counter[str]
    awaited: Counter[str]

    @classmethod
    def of(cls, candidates: Mapping[int, Candidate], vaults: Iterable[Sequence[Place]]) -> "Room":
        staying = (place.user_id for places in vaults for place in places if place.user_id in candidates)
        awaited = Counter(candidates[user_id].key_id for user_id in staying)
        return cls(Counter({each.key_id: each.accounts for each in candidates.values()}), awaited)

    def spare(self, candidate: Candidate) -> int:
        return self.free[candidate.key_id] - self.awaited[candidate.key_id]


def reseat(
    places: Sequence[Place],
    candidates: Mapping[int, Candidate],
    substitutes: Mapping[str, int],
    room: Room,
    names: Mapping[int, str],
) -> tuple[Seat, ...] | str:
    """The replacement's signers in the same order, or why there are none. For each vault of the plan once:
    ``room`` changes.

    A member stays where they have a key that is not exposed. Else the one whom ``substitutes`` names for the
    exposed key takes the place, else the one whose key can join the most vaults. ``names``: of each user in
    words.
    """
    own = [candidates[place.user_id] for place in places if place.user_id in candidates]
    for each in own:
        room.awaited[each.key_id] -= 1
    staying = {each.user_id for each in own if room.free[each.key_id] > 0}
    held = set(staying)
    seated: list[Seat] = []
    for place in places:
        chosen: int | None = place.user_id
        if chosen not in staying:
            named = substitutes.get(place.key_id)
            wanted = candidates.values() if named is None else filter(None, (candidates.get(named),))
            able = [each for each in wanted if each.user_id not in held and room.spare(each) > 0]
            best = max(able, key=lambda each: (room.spare(each), -each.user_id), default=None)
            chosen = None if best is None else best.user_id
        if chosen is None:
            return _why_not(place, candidates, substitutes, names)
        held.add(chosen)
        other = None if chosen == place.user_id else place.user_id
        seated.append(Seat(chosen, candidates[chosen].key_id, other))
    for seat in seated:
        room.free[seat.key_id] -= 1
    return tuple(seated)


def _why_not(
    place: Place,
    candidates: Mapping[int, Candidate],
    substitutes: Mapping[str, int],
    names: Mapping[int, str],
) -> str:
    who = names[place.user_id]
    if place.key_id in substitutes:
        return (
            f"{names[substitutes[place.key_id]]} cannot take the place of {who}: they sign the "
            "vault already, may not approve, or have no key with an unused account that is not exposed."
        )
    if place.user_id in candidates:
        return (
            f"Every vault account that {who} has registered is used, and no other member can "
            "take the place: more are registered with `signerd register`."
        )
    return (
        f"{who} has no key with an unused account that is not exposed, and no other member who may approve "
        "has one: register another device, or more accounts with `signerd register`."
    )


def urgency(m: int, exposed: int, amount: int, vault_id: str) -> tuple[int, int, str]:
    """The order: what the exposed keys alone can spend first, then by how many more they need; then the
    largest amount.
    """
    return max(0, m - exposed), -amount, vault_id


def hash_of(decided: Any) -> str:
    """What two people say yes to. Amounts and fees are none of it: they move with the chain."""
    return sha256(b"evacuation-v1" + canonical_json(decided)).hexdigest()
