"""One proposal, or a workspace's, as the caller may see them; and their search: by title, recipient, amount
and id. A search reads a bounded window of the list at a time; the next page continues there.
"""

import contextlib
from collections.abc import Sequence
from itertools import chain
from typing import Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    String,
    and_,
    cast,
    exists,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.schemas import proposals as wire
from custody.schemas.address_book import KEEPERS
from custody.schemas.call import Page
from custody.schemas.common import Listed, Unreadable
from custody.schemas.proposals import PSBT, ProposalStatus, PsbtQuery
from custody.server.calls import Ctx, Watched, serves
from custody.server.errors import Invalid, NotFound
from custody.server.proposals.lifecycle import NOT_HELD
from custody.server.proposals.records import RecordReader, has_decided, proposal_records
from custody.server.proposals.seeing import may_see, sees_held
from custody.server.requests.rates import SEARCH_CALLS
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shown
from custody.server.store.models import PROOFS, AddressBookEntryRow, ProposalRow, VaultRow, VaultSignerRow
from custody.server.store.store import going_on, within_days
from custody.server.vaults.stored import vault_in
from multisig import parse_btc
from multisig.errors import InvalidAmount

# Counting stops here, so that the cost of a page does not grow with the number of proposals.
MAX_COUNTED = 1_000
# Proposals that are read for one word. For more words they are fewer: each word costs as much as the first.
WINDOW: Final = 5_000
# Read first, for common words.
NEAREST: Final = 500
MAX_WORDS: Final = 8
# Shorter words match too many ids.
LEAST_OF_ID: Final = 4


@serves(PSBT)
def psbt(ctx: Ctx, query: PsbtQuery) -> Watched[wire.Proposal | Page[wire.Proposal | Unreadable]]:
    """Raises NotFound, RateLimited; Invalid where ``after`` is not a proposal of the workspace, or the search
    has too many words.
    """
    answer: wire.Proposal | Page[wire.Proposal | Unreadable]
    if query.psbt_id is not None:
        ctx, proposal = _entered(ctx, query, query.psbt_id)
        (answer,) = proposal_records(ctx.db, [proposal], _reader(ctx))
    else:
        if query.search is not None:
            ctx.services.rates.calls.take(ctx.caller.counted_as, SEARCH_CALLS)
        answer = page(ctx, query)
    return Watched(answer, ctx.access.workspace_id)


def _entered(ctx: Ctx, query: PsbtQuery, psbt_id: str) -> tuple[Ctx, ProposalRow]:
    """Another tenant's proposal is answered exactly as one that does not exist (P24)."""
    proposal = ctx.db.get(ProposalRow, psbt_id)
    with contextlib.suppress(NotFound):
        if proposal is not None and query.workspace_id in {None, proposal.workspace_id}:
            entered = ctx.enter(PSBT, proposal.workspace_id)
            if may_see(entered, proposal):
                return entered, proposal
    raise NotFound("There is no such proposal.")


def page(ctx: Ctx, query: PsbtQuery) -> Page[wire.Proposal | Unreadable]:
    db, matching = ctx.db, _matching(ctx, query)
    newest_first, seen = query.order == "newest", None
    if query.after is not None:
        last = db.get(ProposalRow, query.after)
        if last is None or last.workspace_id != ctx.access.workspace_id:
            raise Invalid.at("/after", "There is no such proposal in this workspace.")
        seen = last.created_at, last.id
    rows = going_on(matching, (ProposalRow.created_at, ProposalRow.id), seen, newest=newest_first)
    after, proposals = None, list[ProposalRow]()
    if query.search is None:
        proposals = list(db.scalars(rows.limit(query.limit + 1)))
        total = len(proposals)
        if query.after is not None or total > query.limit:
            counted = matching.with_only_columns(ProposalRow.id).limit(MAX_COUNTED + 1).subquery()
            total = db.scalar(select(func.count()).select_from(counted)) or 0
    else:
        ids, after = search(db, ctx.access, rows, query.search, query.limit + 1, newest_first=newest_first)
        # By id only: with the list's order SQLite would scan all of it.
        by_id = {each.id: each for each in db.scalars(select(ProposalRow).where(ProposalRow.id.in_(ids)))}
        proposals = [by_id[each] for each in ids]
    if len(proposals) > query.limit:
        after = proposals[query.limit - 1].id
    items = _records(ctx, proposals[: query.limit])
    if query.search is not None:
        return Page(items, len(items), after is not None, after, query.after is None and after is None)
    return Page(items, min(total, MAX_COUNTED), after is not None, after, total <= MAX_COUNTED)


_NO_PAYMENTS: Final = (
    ProposalStatus.REPLACED, ProposalStatus.PROVEN, ProposalStatus.REJECTED, ProposalStatus.EXPIRED,
    ProposalStatus.CANCELLED,
)  # fmt: skip


def newest(ctx: Ctx, most: int) -> Listed[wire.Proposal]:
    """The newest proposals that wait for signatures, and as many payments that were approved."""
    ours = _visible(ctx)
    waits = ProposalRow.status == ProposalStatus.PENDING
    order, newer = (ProposalRow.created_at, ProposalRow.id), ProposalRow.replaced_by_id.is_not(None)
    parts = (ours.where(waits, ~newer), ours.where(~waits, ProposalRow.status.not_in(_NO_PAYMENTS)))
    listed = (ctx.db.scalars(going_on(part, order, None, newest=True).limit(most)) for part in parts)
    return _records(ctx, list(chain.from_iterable(listed)))


def _records(ctx: Ctx, proposals: Sequence[ProposalRow]) -> Listed[wire.Proposal]:
    return shown(
        proposals, lambda some: proposal_records(ctx.db, some, _reader(ctx)), "psbt_id", lambda each: each.id
    )


def _reader(ctx: Ctx) -> RecordReader:
    return RecordReader(ctx.caller.user_id if ctx.caller.service is None else 0, ctx.access)


def _visible(ctx: Ctx) -> Select[ProposalRow]:
    rows = select(ProposalRow).where(ProposalRow.workspace_id == ctx.access.workspace_id)
    own = ProposalRow.created_by == ctx.caller.user_id
    return rows if sees_held(ctx) else rows.where(or_(NOT_HELD, own))


def _matching(ctx: Ctx, query: PsbtQuery) -> Select[ProposalRow]:
    rows = _visible(ctx)
    if query.status is not None:
        rows = rows.where(ProposalRow.status == query.status.value)
    if query.vault_id is not None:
        rows = rows.where(ProposalRow.vault_id == vault_in(ctx.db, ctx.access, query.vault_id).id)
    if query.created_by is not None:
        rows = rows.where(ProposalRow.created_by == query.created_by)
    if query.tx_type is not None:
        rows = rows.where(text(PROOFS))
    rows = rows.where(*within_days(ProposalRow.created_at, query.from_day, query.to_day))
    if query.awaiting is not None:
        rows = rows.where(
            NOT_HELD,
            ProposalRow.status == ProposalStatus.PENDING.value,
            ProposalRow.replaced_by_id.is_(None),
            _may_decide(ctx.caller.user_id),
            ~has_decided(ctx.caller.user_id),
        )
    return rows


def _may_decide(user_id: int) -> ColumnElement[bool]:
    """The user is a signer of the vault, not kept from it as its maker; or the owner of a forward's money."""
    is_signer = exists().where(
        VaultSignerRow.vault_id == ProposalRow.vault_id,
        VaultSignerRow.user_id == user_id,
        VaultRow.id == ProposalRow.vault_id,
        VaultRow.maker_may_approve | (ProposalRow.created_by != user_id),
    )
    return or_(
        and_(ProposalRow.profile_key_id.is_(None), is_signer),
        and_(ProposalRow.profile_key_id.is_not(None), ProposalRow.created_by == user_id),
    )


def search(
    db: Session,
    access: WorkspaceAccess,
    query: Select[ProposalRow],
    text: str,
    count: int,
    *,
    newest_first: bool,
) -> tuple[list[str], str | None]:
    """The ids of the first ``count`` proposals of the ordered query that have every word; and the id of the
    last one that was read, where the window ended before the list did. Raises Invalid.
    """
    words = set(text.split())
    if len(words) > MAX_WORDS:
        raise Invalid.at("/search", f"A search has at most {MAX_WORDS} different words.")
    most = max(1, WINDOW // max(1, len(words)))
    ours = None
    if access.holds_any(KEEPERS):
        ours = AddressBookEntryRow.workspace_id == access.workspace_id
    is_sqlite = db.get_bind().dialect.name == "sqlite"
    matches: list[str] = []
    for looked_at in (NEAREST, most):
        window = query.with_only_columns(*_COLUMNS).limit(min(looked_at, most)).subquery()
        has_all = [_has(window, word, ours, is_sqlite=is_sqlite) for word in words]
        matching = select(window.c.id).where(*has_all)
        order = (window.c.created_at, window.c.id)
        matches = list(db.scalars(going_on(matching, order, None, newest=newest_first).limit(count)))
        if len(matches) == count:
            return matches, None
    return matches, db.scalar(query.with_only_columns(ProposalRow.id).offset(most - 1).limit(1))


_COLUMNS = (
    ProposalRow.id,
    ProposalRow.created_at,
    ProposalRow.description,
    ProposalRow.recipients,
    ProposalRow.amounts_sats,
    ProposalRow.txid_expected,
)


def _has(
    window: FromClause, word: str, ours: ColumnElement[bool] | None, *, is_sqlite: bool
) -> ColumnElement[bool]:
    """Whether the title or a recipient's name in the address book contains the word; or an address, the txid
    or the proposal's id begins with it; or it is an amount of a payment.
    """
    each = func.json_each if is_sqlite else func.json_array_elements_text
    recipients = cast(window.c.recipients, String)
    conditions = [
        func.lower(window.c.description).contains(word.lower(), autoescape=True),
        # Bech32 may be written in upper case (BIP-173), and is stored in lower case.
        *(recipients.contains(f'"{text}', autoescape=True) for text in {word, word.lower()}),
    ]
    if ours is not None:
        is_named = AddressBookEntryRow.name_key.contains(name_key(word), autoescape=True)
        recipient = each(window.c.recipients).table_valued("value").c.value
        named = select(AddressBookEntryRow.address).where(ours, is_named)
        # A count, not EXISTS, which PostgreSQL turns into a join that reads the address book for each
        # proposal.
        count = select(func.count().filter(recipient.in_(named))).select_from(recipient.table)
        conditions.append(count.scalar_subquery() > 0)
    if amounts := _amounts(word):
        amount = cast(each(window.c.amounts_sats).table_valued("value").c.value, String)
        conditions.append(exists(select(amount).where(amount.in_(amounts))))
    if len(word) >= LEAST_OF_ID:
        ids = (window.c.id, window.c.txid_expected)
        conditions += [each.startswith(word.lower(), autoescape=True) for each in ids]
    return or_(*conditions)


def _amounts(word: str) -> list[str]:
    """The amounts in satoshi that a word may mean: as bitcoin and as satoshi."""
    amounts = {word} if word.isascii() and word.isdecimal() else set()
    with contextlib.suppress(InvalidAmount):
        amounts.add(str(int(parse_btc(word))))
    return sorted(amounts)
