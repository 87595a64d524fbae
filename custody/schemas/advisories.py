"""Signed lists of advisories at the platform, and the vaults that one exposes (docs/operate/flaws.md)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from custody.schemas.common import (
    ApiNetwork,
    Count,
    Few,
    Int64,
    IntId,
    Label,
    Prose,
    Request,
    Sats,
    Shape,
    Timestamp,
)
from custody.schemas.queries import QueryId

# As long as a list may be (`custody.advisories.MAX_BYTES`), with its line feed.
ListText = Annotated[str, StringConstraints(max_length=60_001)]


class TakeAdvisoriesRequest(Request):
    """``POST /api/v1/take-advisories``: a publisher's file, as it came."""

    workspace_id: IntId
    list: ListText


class ShownAdvisory(Shape):
    """One entry of a list. ``severity``: ``stop-using`` or ``warn``. A drill concerns test networks alone."""

    advisory_id: Int64
    name: Label
    severity: Label
    text: Prose
    advice: Prose
    sources: Few[Prose]
    is_drill: bool
    taken_at: Timestamp


class AdvisoryPublisher(Shape):
    """A publisher's newest list. ``publisher``: the configured key that leads to its signature. ``list``: the file itself, for a
    reader that believes the signature alone.
    """  # noqa: E501

    publisher: Label
    epoch: Int64
    serial: Int64
    issued: Label
    expires: Label
    is_over: bool
    taken_at: Timestamp
    advisories: Few[ShownAdvisory]
    list: ListText


class ExposuresQuery(Request):
    """``GET /api/v1/exposures``: of the organisation that the workspace belongs to, as far as the caller sees its vaults."""  # noqa: E501

    workspace_id: QueryId
    advisory_id: QueryId


class ExposedKey(Shape):
    """A place in a vault's quorum. ``concern``: ``unknown`` where too little is known of the device; it counts as exposed."""  # noqa: E501

    key_id: Label
    user_id: Label
    concern: Literal["exposed", "unknown"]


class VaultExposure(Shape):
    """A vault with exposed keys. ``keys_to_spare``: how many other keys a thief needs beside the exposed ones; at 0 these are
    enough. ``balance_sats``: with what is unconfirmed. ``replaced_at`` and ``replacement_name``: of the vault that it
    is evacuated to, where it has one. Without coins it stands last then.
    """  # noqa: E501

    vault_id: Label
    workspace_id: Int64
    name: Label
    network: ApiNetwork
    m: Count
    n: Count
    exposed_keys: Count
    keys_to_spare: Annotated[int, Field(ge=0, le=15)]
    balance_sats: Sats
    keys: Few[ExposedKey]
    replaced_at: Timestamp | None = None
    replacement_name: Label | None = None
