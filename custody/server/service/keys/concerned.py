"""Whether an advisory concerns a key, and which keys are unsafe."""

from collections.abc import Collection, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.advisories import Advisory, Concern, KeyFacts
from custody.server.store.models import Key, StoredAdvisory


class AdvisoriesInForce:
    """The advisories in force, by id. ``trusted``: the publishers' keys that the operator has configured,
    x-only in hex; advisories of other publishers are not in force.
    """

    def __init__(self, trusted: Collection[str]) -> None:
        self.trusted = trusted

    def __call__(self, db: Session) -> Mapping[int, Advisory]:
        query = select(StoredAdvisory).where(
            StoredAdvisory.withdrawn_at.is_(None), StoredAdvisory.root.in_(self.trusted)
        )
        return {row.id: Advisory.model_validate(row.body) for row in db.scalars(query)}


def concern_of(advisory: Advisory, key: Key) -> Concern:
    """A drill never concerns keys of mainnet."""
    if advisory.drill and key.network == "mainnet":
        return Concern.NOT
    made_by = f"{key.created_at:%Y-%m-%d}"
    return advisory.concern(KeyFacts(key.maker, key.model, key.firmware, key.made_on, made_by))


def exposing(advisories: Collection[Advisory], key: Key) -> Advisory | None:
    """The first advisory that says to stop using this key. A device of which too little is known does not
    count: coins must not stay exposed for certain because of it.
    """
    grave = (each for each in advisories if each.severity == "stop-using")
    return next((each for each in grave if concern_of(each, key) is Concern.EXPOSED), None)


def are_unsafe(
    db: Session, in_force: Mapping[int, Advisory], key_ids: Collection[str], advisory_id: int | None
) -> bool:
    """Whether there is evidence beyond a member's word that the keys are unsafe: each is lost or superseded,
    or an advisory in force concerns it or may; and the advisory ``advisory_id`` is in force.
    """
    if advisory_id is not None and advisory_id not in in_force:
        return False
    active = db.scalars(select(Key).where(Key.id.in_(key_ids), Key.status == "active"))
    return all(any(concern_of(each, key) is not Concern.NOT for each in in_force.values()) for key in active)
