"""Whether an advisory concerns a key, and which keys have a reason to leave their vaults."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.advisories import Advisory, Concern, KeyFacts
from custody.server.store.models import Key, StoredAdvisory


def concern_of(advisory: Advisory, key: Key) -> Concern:
    """A drill concerns no key of mainnet, and by that none of its vaults."""
    if advisory.drill and key.network == "mainnet":
        return Concern.NOT
    made_by = f"{key.created_at:%Y-%m-%d}"
    return advisory.concern(KeyFacts(key.maker, key.model, key.firmware, key.made_on, made_by))


def are_unsafe(db: Session, key_ids: Collection[str], advisory_id: int | None) -> bool:
    """Whether more than a member's word says so: each key is lost or superseded, or an advisory that stands
    concerns it, or may; and the advisory of this id stands.
    """
    query = select(StoredAdvisory).where(StoredAdvisory.withdrawn_at.is_(None))
    standing = {row.id: Advisory.model_validate(row.body) for row in db.scalars(query)}
    if advisory_id is not None and advisory_id not in standing:
        return False
    active = db.scalars(select(Key).where(Key.id.in_(key_ids), Key.status == "active"))
    return all(any(concern_of(each, key) is not Concern.NOT for each in standing.values()) for key in active)
