"""A proposal's row, read and written past the session, which takes it for its own: every payment does so several times."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session, make_transient_to_detached
from sqlalchemy.orm.attributes import instance_dict, manager_of_class, set_committed_value
from sqlalchemy.orm.util import identity_key

from custody.server.service.proposals.twins import proposed_before
from custody.server.store.models import Proposal, table_of
from custody.server.store.statements import AnyQuestion, Change, Query


def locked_proposal(db: Session, proposal_id: str) -> Proposal | None:
    """To be changed: the newest, whatever the session has read before."""
    found = locked_question(proposal_id).first(db)
    return None if found is None else _in_session(db, dict(zip(_NAMES, found, strict=True)))


def locked_question(proposal_id: str) -> AnyQuestion:
    """What `locked_proposal` asks."""
    return _LOCKED.of({"proposal_id": proposal_id})


def store_row(db: Session, values: Mapping[str, Any]) -> None:
    """Of every column that has a value of its own. Where its transaction is another proposal's, Outdated ends this one."""
    _STORE.later(db, {**_AT_FIRST, **values}, refused=proposed_before)


def stored_row(db: Session, values: Mapping[str, Any]) -> Proposal:
    """The same, for whoever goes on with it."""
    store_row(db, values)
    return _in_session(db, {**_EMPTY, **_AT_FIRST, **values})


def put(db: Session, proposal: Proposal, **changed: Any) -> None:
    """Changes some of its columns."""
    _CHANGE.later(db, {**changed, "changed_id": proposal.id})
    for name, value in changed.items():
        set_committed_value(proposal, name, value)


def _in_session(db: Session, values: Mapping[str, Any]) -> Proposal:
    """As though the session had read it."""
    proposal = db.identity_map.get(identity_key(Proposal, values["id"]))
    if proposal is None:
        # Its constructor would note each column as a change that somebody made.
        proposal = manager_of_class(Proposal).new_instance()
        instance_dict(proposal).update(values)
        make_transient_to_detached(proposal)
        db.add(proposal)
    else:
        for name, value in values.items():
            set_committed_value(proposal, name, value)
    return proposal


# Put together once, and over plain tables: other writers wait meanwhile.
_TABLE = table_of(Proposal)
_NAMES = tuple(column.key for column in _TABLE.columns)
_LOCKED: Query[*tuple[Any, ...]] = Query(
    select(*_TABLE.columns).where(_TABLE.c.id == bindparam("proposal_id")).with_for_update()
)
_STORE = Change(insert(_TABLE))
_CHANGE = Change(update(_TABLE).where(_TABLE.c.id == bindparam("changed_id")))
# What no new one differs in, and what none has yet.
_AT_FIRST = {"keeps_coins": False, "withdrawn_signatures": 0}
_EMPTY = dict.fromkeys((column.key for column in _TABLE.columns if column.nullable), None)
