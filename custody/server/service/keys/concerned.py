"""Whether an advisory concerns a key, and which keys have a reason to leave their vaults."""

from collections.abc import Collection, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.advisories import Advisory, Concern, KeyFacts
from custody.server.store.models import Key, StoredAdvisory


class AdvisoriesInForce:
    """The advisories in force, by id. ``trusted``: the keys of the publishers that the operator has set,
    x-only in hex; what any other has said stands no longer.
    """

    def __init__(self, trusted: Collection[str]) -> None:
        self.trusted = trusted

    def __call__(self, db: Session) -> Mapping[int, Advisory]:
        query = select(StoredAdvisory).where(
            StoredAdvisory.withdrawn_at.is_(None), StoredAdvisory.root.in_(self.trusted)
        )
        return {row.id: Advisory.model_validate(row.body) for row in db.scalars(query)}


def concern_of(advisory: Advisory, key: Key) -> Concern:
    """A drill concerns no key of mainnet, and by that none of its vaults."""
    if advisory.drill and key.network == "mainnet":
        return Concern.NOT
    made_by = f"{key.created_at:%Y-%m-%d}"
    return advisory.concern(KeyFacts(key.maker, key.model, key.firmware, key.made_on, made_by))


def exposing(advisories: Collection[Advisory], key: Key) -> Advisory | None:
    """The first that says: stop using this key. What is not known of its device is no reason to leave coins
    where they are exposed for certain.
    """
    grave = (each for each in advisories if each.severity == "stop-using")
    return next((each for each in grave if concern_of(each, key) is Concern.EXPOSED), None)


def are_unsafe(
    db: Session, in_force: Mapping[int, Advisory], key_ids: Collection[str], advisory_id: int | None
) -> bool:
    """Whether more than a member's word says so: each key is lost or superseded, or an advisory that stands
    concerns it, or may; and the advisory of this id stands.
    """
    if advisory_id is not None and advisory_id not in in_force:
        return False
    active = db.scalars(select(Key).where(Key.id.in_(key_ids), Key.status == "active"))
    return all(any(concern_of(each, key) is not Concern.NOT for each in in_force.values()) for key in active)
