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
    # The replacement vault was created.
    REPLACED = "REPLACED"
    # Every coin that can be swept is in a proposal, whose own status says how far it is.
    PROPOSED = "PROPOSED"
    # The evacuation of this vault stopped; `reason` says why.
    LEFT = "LEFT"


class Event(StrEnum):
    REPLACEMENT_MADE = "replacement-made"
    SWEEP_MADE = "sweep-made"
    NOTHING_MORE = "nothing-more"
    REFUSED = "refused"
    # A member asks for another sweep: coins arrived later, or the reason no longer holds.
    AGAIN = "again"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.PLANNED, Event.REPLACEMENT_MADE): State.REPLACED,
    (State.PLANNED, Event.REFUSED): State.LEFT,
    # A transaction has a bounded number of inputs: there may be more coins.
    (State.REPLACED, Event.SWEEP_MADE): State.REPLACED,
    (State.REPLACED, Event.NOTHING_MORE): State.PROPOSED,
    (State.REPLACED, Event.REFUSED): State.LEFT,
    (State.PROPOSED, Event.AGAIN): State.REPLACED,
    (State.LEFT, Event.AGAIN): State.REPLACED,
}

# How far the sweeps of a vault are: the least advanced one decides. Statuses that are not here have ended.
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
    """The stage of a vault as it is shown. ``sweeps``: the status of each sweep's newest version.
    ``left_sats``: the amount at the vault's addresses that no proposal spends.
    """
    if state is not State.PROPOSED:
        return {State.PLANNED: "planned", State.REPLACED: "replaced", State.LEFT: "left"}[state]  # type: ignore[return-value]
    stage: EvacuationStage = next((stage for stage, statuses in STAGES if statuses & set(sweeps)), "ended")
    has_ended = any(all(status not in statuses for _, statuses in STAGES) for status in sweeps)
    # The coins of a sweep that ended are still there, unless another sweep spent them.
    return "ended" if stage == "confirmed" and has_ended and left_sats else stage


class ExposedSigner(NamedTuple):
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


class ReplacementSigner(NamedTuple):
    """A signer of the replacement. ``instead_of``: the former signer, where that is another member."""

    user_id: int
    key_id: str
    instead_of: int | None = None


@dataclass(frozen=True)
class FreeAccounts:
    """By key, over a whole plan: ``free`` is the number of unused accounts; ``awaited`` is in how many vaults
    that are still to be planned its holder stays a signer, for which as many accounts are reserved.
    """

    free: Counter[str]
    awaited: Counter[str]

    @classmethod
    def of(
        cls, candidates: Mapping[int, Candidate], vaults: Iterable[Sequence[ExposedSigner]]
    ) -> "FreeAccounts":
        staying = (place.user_id for places in vaults for place in places if place.user_id in candidates)
        awaited = Counter(candidates[user_id].key_id for user_id in staying)
        return cls(Counter({each.key_id: each.accounts for each in candidates.values()}), awaited)

    def spare(self, candidate: Candidate) -> int:
        return self.free[candidate.key_id] - self.awaited[candidate.key_id]


def choose_signers(
    places: Sequence[ExposedSigner],
    candidates: Mapping[int, Candidate],
    substitutes: Mapping[str, int],
    room: FreeAccounts,
    names: Mapping[int, str],
) -> tuple[ReplacementSigner, ...] | str:
    """The replacement's signers in the same order, or the reason why there are none.

    Call it once for each vault of the plan: it updates ``room``. A member who has a key that is not exposed
    stays. Otherwise the member whom ``substitutes`` names for the exposed key takes the place, or else the
    one whose key can join the most vaults. ``names``: the name of each user.
    """
    own = [candidates[place.user_id] for place in places if place.user_id in candidates]
    for each in own:
        room.awaited[each.key_id] -= 1
    staying = {each.user_id for each in own if room.free[each.key_id] > 0}
    held = set(staying)
    seated: list[ReplacementSigner] = []
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
        seated.append(ReplacementSigner(chosen, candidates[chosen].key_id, other))
    for seat in seated:
        room.free[seat.key_id] -= 1
    return tuple(seated)


def _why_not(
    place: ExposedSigner,
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
    """The sort key: fewest signatures beyond the exposed keys' first, then the largest amount."""
    return max(0, m - exposed), -amount, vault_id


def hash_of(decided: Any) -> str:
    """The hash of what two people confirm. It leaves out amounts and fees, which change with the chain."""
    return sha256(b"evacuation-v1" + canonical_json(decided)).hexdigest()
