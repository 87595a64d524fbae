"""One proposal, or a workspace's, as the caller may see them."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, text, tuple_
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.call import Page
from custody.schemas.common import Listed, Unreadable
from custody.schemas.proposals import PSBT, ProposalStatus, PsbtQuery
from custody.server.calls import Ctx, Watched, serves
from custody.server.errors import Invalid, NotFound
from custody.server.proposals.records import RecordReader, proposal_records
from custody.server.proposals.searching import has_decided, search
from custody.server.proposals.signing import APPROVER
from custody.server.requests.changes import read_revision
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shown
from custody.server.store.models import PROOFS, ProposalRow, VaultSignerRow
from custody.server.store.store import within_days
from custody.server.vaults.stored import vault_in

# Counting stops here, so that the cost of a page does not grow with the number of proposals.
MAX_COUNTED = 1_000


@serves(PSBT)
def psbt(ctx: Ctx, query: PsbtQuery) -> Watched[wire.Proposal | Page[wire.Proposal | Unreadable]]:
    """Raises NotFound, RateLimited; Invalid where ``after`` is not a proposal of the workspace, or the search
    has too many words.
    """
    found: wire.Proposal | Page[wire.Proposal | Unreadable]
    if query.psbt_id is not None:
        ctx, proposal = _entered(ctx, query, query.psbt_id)
        (found,) = proposal_records(ctx.db, [proposal], _reader(ctx))
    else:
        if query.search is not None:
            ctx.services.rates.take_search(ctx.caller.counted_as)
        found = page(ctx, query)
    # Read in the same snapshot as the answer: a later commit has a higher revision.
    return Watched(found, ctx.access.workspace_id, read_revision(ctx.db, ctx.access.workspace_id))


def _entered(ctx: Ctx, query: PsbtQuery, psbt_id: str) -> tuple[Ctx, ProposalRow]:
    """Another tenant's proposal is answered exactly as one that does not exist (P24)."""
    proposal = ctx.db.get(ProposalRow, psbt_id)
    if proposal is None or query.workspace_id not in {None, proposal.workspace_id}:
        raise _no_such_proposal()
    try:
        return ctx.enter(PSBT, proposal.workspace_id), proposal
    except NotFound:
        raise _no_such_proposal() from None


def _no_such_proposal() -> NotFound:
    return NotFound("There is no such proposal.")


def page(ctx: Ctx, query: PsbtQuery) -> Page[wire.Proposal | Unreadable]:
    matching = rows = _matching(ctx, query)
    newest_first, place = query.order == "newest", tuple_(ProposalRow.created_at, ProposalRow.id)
    if query.after is not None:
        seen = _position(ctx.db, ctx.access, query.after)
        rows = rows.where(place < seen if newest_first else place > seen)
    order = (ProposalRow.created_at, ProposalRow.id)
    rows = rows.order_by(*(each.desc() if newest_first else each for each in order))
    if query.search is not None:
        return _searched(ctx, query, query.search, rows)
    counted = matching.with_only_columns(ProposalRow.id).limit(MAX_COUNTED + 1).subquery()
    total = ctx.db.scalar(select(func.count()).select_from(counted)) or 0
    found: Sequence[ProposalRow] = ctx.db.scalars(rows.limit(query.limit + 1)).all()
    after = found[query.limit - 1].id if len(found) > query.limit else None
    items = _shown(ctx, found[: query.limit])
    return Page(items, min(total, MAX_COUNTED), after is not None, after, total <= MAX_COUNTED)


def _searched(
    ctx: Ctx, query: PsbtQuery, words: str, rows: Select[ProposalRow]
) -> Page[wire.Proposal | Unreadable]:
    newest_first = query.order == "newest"
    ids, after = search(ctx.db, ctx.access, rows, words, query.limit + 1, newest_first=newest_first)
    if len(ids) > query.limit:
        after = ids[query.limit - 1]
    listed = ids[: query.limit]
    # By id only: with the list's order SQLite would scan all of it.
    found = {each.id: each for each in ctx.db.scalars(select(ProposalRow).where(ProposalRow.id.in_(listed)))}
    items = _shown(ctx, [found[each] for each in listed])
    return Page(items, len(items), after is not None, after, query.after is None and after is None)


def _shown(ctx: Ctx, proposals: Sequence[ProposalRow]) -> Listed[wire.Proposal]:
    reader = _reader(ctx)
    return shown(
        proposals,
        lambda some: proposal_records(ctx.db, some, reader),
        "psbt_id",
        lambda proposal: proposal.id,
    )


def _reader(ctx: Ctx) -> RecordReader:
    """A program is not a signer, even where its maker is one."""
    return RecordReader(
        ctx.caller.user_id if ctx.caller.service is None else 0, ctx.access.holds_any(APPROVER)
    )


def _matching(ctx: Ctx, query: PsbtQuery) -> Select[ProposalRow]:
    rows = select(ProposalRow).where(ProposalRow.workspace_id == ctx.access.workspace_id)
    if query.status is not None:
        rows = rows.where(ProposalRow.status == query.status.value)
    if query.vault_id is not None:
        rows = rows.where(ProposalRow.vault_id == vault_in(ctx.db, ctx.access, query.vault_id).id)
    if query.tx_type is not None:
        rows = rows.where(text(PROOFS))
    rows = rows.where(*within_days(ProposalRow.created_at, query.from_day, query.to_day))
    if query.awaiting is not None:
        rows = rows.where(
            ProposalRow.status == ProposalStatus.PENDING.value,
            ProposalRow.replaced_by_id.is_(None),
            _may_decide(ctx.caller.user_id),
            ~has_decided(ctx.caller.user_id),
        )
    return rows


def _may_decide(user_id: int) -> ColumnElement[bool]:
    """The user is a signer of the vault, or the owner of a forward's money."""
    is_signer = exists().where(
        VaultSignerRow.vault_id == ProposalRow.vault_id, VaultSignerRow.user_id == user_id
    )
    return or_(
        and_(ProposalRow.profile_key_id.is_(None), is_signer),
        and_(ProposalRow.profile_key_id.is_not(None), ProposalRow.created_by == user_id),
    )


def _position(db: Session, access: WorkspaceAccess, proposal_id: str) -> tuple[object, str]:
    proposal = db.get(ProposalRow, proposal_id)
    if proposal is None or proposal.workspace_id != access.workspace_id:
        raise Invalid.at("/after", "There is no such proposal in this workspace.")
    return proposal.created_at, proposal.id
