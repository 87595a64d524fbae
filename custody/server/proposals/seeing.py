"""Which proposals a caller may see, and which of those hold a vault's coins, by name."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Select, func, select, text
from sqlalchemy.orm import defer

from custody.common.text import count, foreign
from custody.schemas.call import WORKSPACE_MANAGERS, PermissionName
from custody.server.calls import Ctx
from custody.server.proposals.lifecycle import HELD, age_in_family, holds_coins_clause
from custody.server.store.models import HELD as HOLDS
from custody.server.store.models import CoinLockRow, ProposalRow

APPROVER: Final = frozenset({PermissionName.PAYMENT_APPROVE})
# Of those that hold coins, in a sentence; and characters of a title there.
_NAMED: Final = 3
_TITLE: Final = 40


def sees_held(ctx: Ctx) -> bool:
    """Whoever approves and manages nothing gets no proposal before the vault's screening lets it through, but
    for their own.
    """
    return ctx.access.holds_any(WORKSPACE_MANAGERS) or not ctx.access.holds_any(APPROVER)


def may_see(ctx: Ctx, proposal: ProposalRow) -> bool:
    """A proposal of the caller's workspace."""
    return proposal.screening != HELD or proposal.created_by == ctx.caller.user_id or sees_held(ctx)


def holders(ctx: Ctx, family_ids: Collection[str] | Select[str]) -> dict[str, ProposalRow]:
    """By family, the newest version that holds coins, where the caller may see it."""
    of_them = select(ProposalRow).where(ProposalRow.family_id.in_(family_ids), holds_coins_clause())
    light = of_them.options(defer(ProposalRow.psbt), defer(ProposalRow.final_tx))
    rows = sorted(ctx.db.scalars(light), key=age_in_family)
    newest = {each.family_id: each for each in rows}
    return {family_id: each for family_id, each in newest.items() if may_see(ctx, each)}


def holder_words(proposal: ProposalRow | None) -> str:
    """``None``: one that the caller may not see."""
    if proposal is None:
        return "another proposal"
    title = foreign(proposal.description or "")
    cut = title if len(title) <= _TITLE else f"{title[:_TITLE]}…"
    ended = ", ended when signatures were out" if proposal.keeps_coins else ""
    return f"proposal {proposal.id}" + (f" “{cut}”" if title else "") + ended


def holders_words(ctx: Ctx, vault_id: str) -> str:
    """Those that hold a vault's unspent coins, the largest first, as the end of a sentence."""
    largest = (
        select(CoinLockRow.family_id)
        .where(CoinLockRow.vault_id == vault_id, text(HOLDS))
        .group_by(CoinLockRow.family_id)
        .order_by(func.sum(CoinLockRow.held_sats).desc(), CoinLockRow.family_id)
    )
    return named(ctx, largest)


def named(ctx: Ctx, families: Select[str]) -> str:
    """The first of these, and how many more there are."""
    ids = list(ctx.db.scalars(families))
    found = holders(ctx, ids[:_NAMED])
    words = [holder_words(found[each]) for each in ids[:_NAMED] if each in found]
    if more := len(ids) - len(words):
        words.append(count(more, "other proposal", "other proposals"))
    return " and ".join(filter(None, ("; ".join(words[:-1]), *words[-1:]))) or "other proposals"
