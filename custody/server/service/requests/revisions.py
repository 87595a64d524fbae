"""A number for each workspace that rises with whatever readers of its proposals see change, in the transaction of the change.

A long poll asks for this one number, and for its list only when the number has risen.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, exists, insert, select, update
from sqlalchemy.orm import Session

from custody.server.store.models import Proposal, Revision, Workspace, table_of

# Databases bound how many values one statement takes; SQLite's oldest bound is 999 (https://sqlite.org/limits.html).
CHUNK = 500
_REVISIONS = table_of(Revision)
_RAISE = (
    update(_REVISIONS)
    .where(_REVISIONS.c.workspace_id == bindparam("raised_id"))
    .values(number=_REVISIONS.c.number + 1)
    .returning(_REVISIONS.c.number)
)
_NUMBER = select(Revision.number).where(Revision.workspace_id == bindparam("workspace_id"))


def raise_revision(db: Session, workspace_id: int) -> int:
    """The workspace's new number. One writer at a time (ADR 13): nobody raises it from the same value."""
    number: int | None = db.scalar(_RAISE, {"raised_id": workspace_id})
    if number is None:
        number = 1
        db.execute(insert(_REVISIONS), {"workspace_id": workspace_id, "number": number})
    return number


def raise_for_block(db: Session, chain: str) -> None:
    """A block came or went: every proposal that stands in one has another number of confirmations."""
    on_chain = select(Workspace.id).where(Workspace.chain == chain)
    in_a_block = exists().where(
        Proposal.workspace_id == Revision.workspace_id, Proposal.block_height.is_not(None)
    )
    db.execute(
        update(Revision)
        .where(Revision.workspace_id.in_(on_chain), in_a_block)
        .values(number=Revision.number + 1)
        .execution_options(synchronize_session=False)
    )


def read_revision(db: Session, workspace_id: int) -> int:
    """0 where nothing was ever proposed."""
    return db.scalar(_NUMBER, {"workspace_id": workspace_id}) or 0


def read_revisions(db: Session, workspace_ids: Iterable[int]) -> Mapping[int, int]:
    """Those that have one."""
    wanted = sorted(workspace_ids)
    chunks = (wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK))
    return {
        revision.workspace_id: revision.number
        for chunk in chunks
        for revision in db.scalars(select(Revision).where(Revision.workspace_id.in_(chunk)))
    }
