"""Evacuations: a plan, the two people's yes to it, and how far it is (docs/operate/incidents.md)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from custody.schemas.common import (
    DIGITS,
    Count,
    Few,
    Int64,
    IntId,
    Label,
    Priority,
    Prose,
    Request,
    Sats,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.queries import QueryId
from custody.text import count

# In one plan: the most urgent. The others are planned after it.
MAX_EVACUATED = 500
MAX_EXPOSED_KEYS = 1_000

EvacuationStage = Literal[
    "planned", "replaced", "awaiting-approval", "signed", "broadcast", "confirmed", "ended", "left"
]


class EvacuationRequest(Request):
    """``POST /api/v1/preview-evacuation``: of every vault of the workspace in whose quorum one of these keys stands, or one that the
    advisory concerns. No key that it concerns gets into a replacement.

    ``substitutes``: by exposed key, the user who takes its place in each vault where its holder has no other key; the platform
    proposes somebody where none is named. ``priority``: of the sweeps' fee.
    """  # noqa: E501

    workspace_id: IntId
    exposed_keys: Annotated[
        list[TextId], Field(max_length=MAX_EXPOSED_KEYS, json_schema_extra={"uniqueItems": True})
    ] = Field(default_factory=list)
    advisory_id: IntId | None = None
    substitutes: Annotated[
        dict[TextId, IntId], Field(max_length=100, json_schema_extra={"additionalProperties": False})
    ] = Field(default_factory=dict)
    priority: Priority = "high"

    @model_validator(mode="after")
    def _names_keys(self) -> "EvacuationRequest":
        if not self.exposed_keys and self.advisory_id is None:
            raise ValueError("exposed_keys: name the keys, or an advisory_id")
        return self


PlanPlace = Annotated[int, Field(ge=0, lt=MAX_EVACUATED), DIGITS]
PlanCount = Annotated[int, Field(ge=1, le=MAX_EVACUATED), DIGITS]


class PreviewEvacuationRequest(EvacuationRequest):
    """For a look at the plan. ``first`` and ``count``: which of its vaults are told of, from 0 on."""

    first: PlanPlace = 0
    count: PlanCount = MAX_EVACUATED


class StartEvacuationRequest(EvacuationRequest):
    """``POST /api/v1/start-evacuation``: of the plan that has this hash. A second person is asked for it."""

    plan_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class EvacuationSigner(Shape):
    """Of a replacement. ``instead_of_user_id``: whose place it was, where that is another member. Members choose their names:
    ``fingerprint`` is the key's, as its device shows it.
    """  # noqa: E501

    user_id: Label
    name: Label
    key_id: Label
    fingerprint: Label = ""
    instead_of_user_id: Label | None = None
    instead_of_name: Label | None = None

    def in_words(self) -> str:
        """The fingerprint first, and the name quoted: it may imitate several signers."""
        instead = "" if self.instead_of_user_id is None else f", instead of {self.instead_of_name!r}"
        return f"{self.fingerprint} {self.name!r}{instead}"


class PlannedVault(Shape):
    """An exposed vault: the most urgent first, in an order that no amount changes. Of those that are as urgent, the largest is moved
    first. ``cannot``: why it is not. ``signers`` are the replacement's, of which
    ``m`` sign as before.

    ``amount_sats`` arrive by the first sweep at the present rate, for ``fee_sats``; ``further_sats`` take more sweeps. Not swept are
    ``held_sats`` of proposals (those in ``cancels`` are cancelled first, those in ``holds`` have signatures out or are on their way),
    ``waiting_sats`` in no block yet, ``small_sats`` below their own fee and ``kept_sats`` for the vault's tokens. ``forwards`` are open
    and pay the old address: up to 100 of each. ``notes`` say it in words, of the
    oldest 1,000 in a vault.
    """  # noqa: E501

    vault_id: Label
    vault_name: Label
    m: Count
    n: Count
    exposed: Count
    replacement_name: Label
    signers: Few[EvacuationSigner]
    cannot: Prose | None = None
    amount_sats: Sats
    fee_sats: Sats
    further_sats: Sats
    held_sats: Sats
    waiting_sats: Sats
    small_sats: Sats
    kept_sats: Sats
    cancels: Few[Label]
    holds: Few[Label]
    forwards: Few[Label]
    notes: Few[Prose]


class VaultKey(Shape):
    """A key that stands in the workspace's vaults, so many of them, and whose it is. ``fingerprint``: as its device shows it."""  # noqa: E501

    key_id: Label
    user_id: Label
    name: Label
    fingerprint: Label
    vaults: Count

    def in_words(self) -> str:
        return f"{self.fingerprint} {self.name!r}, in {count(self.vaults, 'vault', 'vaults')}"


class EvacuationPlan(Shape):
    """``plan_hash`` stands for all its vaults, the replacements' names, thresholds and keys, and the priority: not for amounts and
    fees, which move with the chain. ``further_vaults``: how many exposed ones are not in it, because it has 500 at most.

    ``vaults`` are those that were asked for, from the place ``first`` on; all of them are ``planned_vaults``, of which
    ``moved_vaults`` get a replacement and hold ``moved_sats``. ``exposed_keys`` stand in its quorums, and ``substitutes`` may be
    named for one whose holder is none of them: for a caller who has MANAGE_WORKSPACE. ``new_keys`` of the whole plan: each that stands
    in replacements and not in the vaults that they replace, once, and in how many; those in most of them first.
    """  # noqa: E501

    plan_hash: Label
    fee_rate: Label
    priority: Priority
    vaults: Few[PlannedVault]
    further_vaults: Count
    first: Count = 0
    planned_vaults: Count = 0
    moved_vaults: Count = 0
    moved_sats: Sats = 0
    exposed_keys: Few[VaultKey] = Field(default_factory=list)
    substitutes: Few[EvacuationSigner] = Field(default_factory=list)
    new_keys: Few[VaultKey] = Field(default_factory=list)


class EvacuationsQuery(Request):
    """``GET /api/v1/evacuations``: the newest first, or one."""

    workspace_id: QueryId
    evacuation_id: TextId | None = None


class SweepAgainRequest(Request):
    """``POST /api/v1/sweep-again``."""

    workspace_id: IntId
    evacuation_id: TextId
    vault_id: TextId


class EvacuatedVault(Shape):
    """``stage``: ``left`` where something refuses, which ``reason`` says; ``ended`` where a sweep ended without being mined and coins are left.

    ``replacement_address`` is where the sweeps pay: the first address of the replacement, which each signer's device shows when they
    pin it. ``unsigned_sats`` are in sweeps that await signatures, ``swept_sats`` in those that are signed, on their way or confirmed;
    ``fee_sats`` are both's. ``left_sats``: at the old vault's addresses and in no proposal. ``may_sweep_again``: where sweep-again would try.
    """  # noqa: E501

    vault_id: Label
    vault_name: Label
    stage: EvacuationStage
    reason: Prose | None = None
    replacement_id: Label | None = None
    replacement_name: Label
    replacement_address: Label | None = None
    verification_code: Label | None = None
    psbt_ids: Few[Label]
    unsigned_sats: Sats = 0
    swept_sats: Sats
    fee_sats: Sats
    left_sats: Sats
    may_sweep_again: bool
    replaced_at: Timestamp | None = None
    proposed_at: Timestamp | None = None


class Evacuation(Shape):
    """A timed report. ``asked_at`` and ``confirmed_by_name``: of the change that a second person confirmed. ``replaced_at`` and
    ``proposed_at``: when the last replacement was there and the last sweep awaited approval; ``confirmed_at``: when the last sweep was
    seen in a block. Each is null until then; vaults that are ``left`` do not count.
    """  # noqa: E501

    evacuation_id: Label
    workspace_id: Int64
    plan_hash: Label
    priority: Priority
    started_by: Label
    started_by_name: Label
    confirmed_by_name: Label | None = None
    asked_at: Timestamp | None = None
    started_at: Timestamp
    replaced_at: Timestamp | None = None
    proposed_at: Timestamp | None = None
    confirmed_at: Timestamp | None = None
    vaults: Few[EvacuatedVault]
