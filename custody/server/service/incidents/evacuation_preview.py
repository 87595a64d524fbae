"""A plan as it is shown: the amounts that would move now, and the open proposals. Nothing here writes."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from sqlalchemy import Select, bindparam, case, func, or_, select, text, true
from sqlalchemy.orm import Session, aliased

from custody.schemas import evacuations as wire
from custody.schemas.common import MAX_INT64
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.users import PermissionName
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.evacuation import ReplacementSigner
from custody.server.domain.limits import in_btc
from custody.server.service.backends import Quote
from custody.server.service.incidents.evacuation_plan import Decided, Planned, people_of
from custody.server.service.keys.quorums import AdvisoriesInForce, unfit_to_receive
from custody.server.service.proposals.coins import VaultCoins, kept_for_tokens
from custody.server.service.proposals.drafting import Drafter, plan_of
from custody.server.service.proposals.payments import Intent, Payment
from custody.server.service.proposals.records import rate_text
from custody.server.service.stored_vaults import policy_of
from custody.server.store.models import (
    OPEN,
    EvacuatedVault,
    Key,
    Proposal,
    Signature,
    Vault,
    VaultSigner,
)
from custody.text import count
from multisig import CHANGE, FeeRate, Sats, TxOut

# A vault's oldest open proposals: how many a plan reads, and how many ids it returns.
MOST_READ, MOST_NAMED = 1_000, 100


@dataclass(frozen=True)
class PlanPage:
    """A page of the plan's vaults, from index ``first`` on. All other figures are of the whole plan."""

    first: int = 0
    count: int = wire.MAX_EVACUATED


@dataclass(frozen=True)
class _Money:
    amount: int = 0
    fee: int = 0
    further: int = 0
    held: int = 0
    waiting: int = 0
    small: int = 0
    kept: int = 0


@dataclass(frozen=True)
class OpenProposals:
    """The open proposals of a vault: ``cancels`` have no signatures, or are unfinished sweeps to a
    replacement that is unfit now; ``holds`` keep their coins locked; ``forwards`` pay the vault.
    ``is_part``: there are more.
    """

    cancels: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    forwards: tuple[str, ...] = ()
    is_part: bool = False


def shown(
    db: Session,
    access: WorkspaceAccess,
    decided: Decided,
    drafter: Drafter,
    quote: Quote,
    request: wire.EvacuationRequest,
    part: PlanPage,
    in_force: AdvisoriesInForce,
) -> wire.EvacuationPlan:
    """A part beyond the end gives the last one."""
    last = max(len(decided.vaults) - 1, 0) // part.count * part.count
    first = part.first if part.first < len(decided.vaults) else last
    page = decided.vaults[first:][: part.count]
    places = [seat.instead_of for each in page for seat in each.seats if seat.instead_of is not None]
    # A caller who may not start an evacuation is not shown members who sign nothing.
    may_start = PermissionName.MANAGE_WORKSPACE in access.permissions
    free = (
        [ReplacementSigner(each.user_id, each.key_id) for each in decided.candidates.values()]
        if may_start
        else []
    )
    seats = [*free, *(seat for each in page for seat in each.seats)]
    new = decided.new_keys
    names = people_of(db, {*places, *(seat.user_id for seat in seats), *(user_id for user_id, _ in new)})
    prints = _fingerprints(db, {*(seat.key_id for seat in seats), *(key_id for _, key_id in new)})
    held, ids = decided.sats, [each.vault.id for each in page]
    stored = {vault.id: vault for vault in db.scalars(select(Vault).where(Vault.id.in_(ids)))}
    is_open = open_in(db, ids, in_force, MOST_READ)
    rate = quote.rates[request.priority]
    vaults = [
        _planned(
            each,
            stored[each.vault.id],
            _money(db, stored[each.vault.id], drafter, rate, quote) if held[each.vault.id] else _Money(),
            is_open.get(each.vault.id, OpenProposals()),
            names,
            prints,
        )
        for each in page
    ]
    moved = [each for each in decided.vaults if each.cannot is None]
    return wire.EvacuationPlan(
        plan_hash=decided.plan_hash,
        fee_rate=rate_text(rate),
        priority=request.priority,
        vaults=vaults,
        further_vaults=decided.further,
        first=first,
        planned_vaults=len(decided.vaults),
        moved_vaults=len(moved),
        moved_sats=sum(held[each.vault.id] for each in moved),
        exposed_keys=keys_of_vaults(db, access, decided.exposed),
        new_keys=[
            wire.VaultKey(
                key_id=key_id,
                user_id=str(user_id),
                name=names[user_id],
                fingerprint=prints[key_id],
                vaults=new[user_id, key_id],
            )
            for user_id, key_id in sorted(new, key=lambda each: (-new[each], each))[: wire.MAX_EXPOSED_KEYS]
        ],
        substitutes=[_signer(seat, names, prints) for seat in free[: wire.MAX_EXPOSED_KEYS]],
    )


def keys_of_vaults(
    db: Session, access: WorkspaceAccess, among: Collection[str] | None = None
) -> list[wire.VaultKey]:
    """The keys of the workspace's vaults, in order of their holders' names: all, or those of ``among``."""
    query = (
        select(VaultSigner.key_id, VaultSigner.user_id, VaultSigner.fingerprint, func.count())
        .join(Vault, Vault.id == VaultSigner.vault_id)
        .where(Vault.workspace_id == access.workspace_id)
        .group_by(VaultSigner.key_id, VaultSigner.user_id, VaultSigner.fingerprint)
    )
    if among is not None:
        query = query.where(VaultSigner.key_id.in_(among))
    rows = db.execute(query).all()
    names = people_of(db, {user_id for _, user_id, _, _ in rows})
    found = [
        wire.VaultKey(
            key_id=key_id, user_id=str(user_id), name=names[user_id], fingerprint=fingerprint, vaults=vaults
        )
        for key_id, user_id, fingerprint, vaults in rows
    ]
    return sorted(found, key=lambda each: (each.name, each.key_id))[: wire.MAX_EXPOSED_KEYS]


def _fingerprints(db: Session, key_ids: Collection[str]) -> Mapping[str, str]:
    return dict(db.execute(select(Key.id, Key.master_fingerprint).where(Key.id.in_(key_ids))).all())


_READ_OF_OPEN = (
    Proposal.id,
    Proposal.vault_id,
    Proposal.status,
    Proposal.profile_key_id,
    Proposal.withdrawn_signatures,
    Proposal.evacuation_id,
    Proposal.created_at,
)


@cache
def _oldest(*, is_sqlite: bool) -> Select[str, str, str, str | None, bool | None, str | None]:
    """The oldest open proposals of each vault, read by index and no more of them than are shown. SQLite has
    no LATERAL; PostgreSQL would evaluate the IN for each proposal.
    """
    own = aliased(Proposal) if is_sqlite else Proposal
    read = (own.id,) if is_sqlite else _READ_OF_OPEN
    oldest = select(*read).where(own.vault_id == Vault.id, text(OPEN)).order_by(own.created_at, own.id)
    oldest = oldest.limit(bindparam("most")).correlate(Vault)
    one = Proposal if is_sqlite else aliased(Proposal, oldest.lateral())
    # As `released_signatures` counts them. For an EXISTS PostgreSQL would scan all signatures.
    signature = select(Signature.input_index).where(Signature.proposal_id == one.id).limit(1)
    is_out = or_(one.withdrawn_signatures > 0, signature.scalar_subquery().is_not(None))
    return (
        select(
            one.vault_id,
            one.id,
            one.status,
            one.profile_key_id,
            case((one.status == Status.PENDING.value, is_out)),
            EvacuatedVault.replacement_id,
        )
        .select_from(Vault)
        .join(one, one.id.in_(oldest) if is_sqlite else true())
        .outerjoin(
            EvacuatedVault,
            (EvacuatedVault.evacuation_id == one.evacuation_id) & (EvacuatedVault.vault_id == one.vault_id),
        )
        .where(Vault.id.in_(bindparam("vault_ids", expanding=True)))
        .order_by(one.created_at, one.id)
    )


def open_in(
    db: Session, vault_ids: Sequence[str], in_force: AdvisoriesInForce, most: int = MAX_INT64 - 1
) -> Mapping[str, OpenProposals]:
    """By vault, where it has open proposals. ``most``: at most this many of each vault, the oldest."""
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    statement = _oldest(is_sqlite=db.get_bind().dialect.name == "sqlite")
    rows = db.execute(statement, {"vault_ids": list(vault_ids), "most": most + 1}).all()
    replacements = {row.replacement_id for row in rows} - {None}
    unfit = unfit_to_receive(db, cast("set[str]", replacements), in_force(db).values())
    seen: Counter[str] = Counter()
    for vault_id, psbt_id, status, profile_key_id, has_signatures, replacement in rows:
        seen[vault_id] += 1
        if seen[vault_id] > most:
            continue
        is_unsigned = status == Status.PENDING and not has_signatures
        # The next sweep spends its coins: one of the two is mined, and either pays a vault of the workspace.
        is_abandoned = replacement in unfit and status in {Status.PENDING, Status.CANCELLED}
        is_cancelled = is_unsigned or is_abandoned
        kind = "forwards" if profile_key_id is not None else "cancels" if is_cancelled else "holds"
        kinds[vault_id][kind].append(psbt_id)
    return {
        vault_id: OpenProposals(
            **{kind: tuple(ids) for kind, ids in found.items()},
            is_part=seen[vault_id] > most,
        )
        for vault_id, found in kinds.items()
    }


def _money(db: Session, vault: Vault, drafter: Drafter, rate: FeeRate, quote: Quote) -> _Money:
    # A change script of the vault stands in for the replacement's, which has the same length.
    policy = policy_of(vault)
    intent = Intent((Payment("", TxOut(Sats(0), policy.script_pubkey(CHANGE, 0))),), sweeps=True)
    plan = plan_of(policy, intent, rate)
    kept = kept_for_tokens(db, vault, quote.tip.height, intent.outputs)
    coins = drafter.largest_that_fit(db, vault, intent, plan, quote, kept)
    tally = VaultCoins(vault.id, quote.tip.height).tally(db, plan, kept)
    held = sum(coin.amount for coin in coins)
    fee = plan.fee(len(coins), with_change=False) if coins else Sats(0)
    return _Money(
        amount=max(0, held - fee),
        fee=min(fee, held),
        further=tally.free - held,
        held=tally.held,
        waiting=tally.waiting,
        small=tally.small,
        kept=tally.kept,
    )


def _planned(
    each: Planned,
    vault: Vault,
    money: _Money,
    is_open: OpenProposals,
    names: Mapping[int, str],
    prints: Mapping[str, str],
) -> wire.PlannedVault:
    return wire.PlannedVault(
        vault_id=vault.id,
        vault_name=vault.name,
        m=vault.m,
        n=vault.n,
        exposed=each.vault.exposed,
        replacement_name=each.name,
        signers=[_signer(seat, names, prints) for seat in each.seats],
        cannot=each.cannot,
        **{f"{name}_sats": value for name, value in vars(money).items()},
        cancels=list(is_open.cancels[:MOST_NAMED]),
        holds=list(is_open.holds[:MOST_NAMED]),
        forwards=list(is_open.forwards[:MOST_NAMED]),
        notes=_notes(vault, money, is_open),
    )


def _signer(
    seat: ReplacementSigner, names: Mapping[int, str], prints: Mapping[str, str]
) -> wire.EvacuationSigner:
    return wire.EvacuationSigner(
        user_id=str(seat.user_id),
        name=names[seat.user_id],
        key_id=seat.key_id,
        fingerprint=prints[seat.key_id],
        instead_of_user_id=None if seat.instead_of is None else str(seat.instead_of),
        instead_of_name=None if seat.instead_of is None else names[seat.instead_of],
    )


def _notes(vault: Vault, money: _Money, is_open: OpenProposals) -> list[str]:
    def btc(sats: int) -> str:
        return f"{in_btc(sats)} BTC"

    cancels, holds, forwards = (len(ids) for ids in (is_open.cancels, is_open.holds, is_open.forwards))
    oldest = f"More than {MOST_READ:,} proposals are open in it. Of the oldest {MOST_READ:,}:"
    said = (
        (vault.frozen_at, "The vault is frozen: two members unfreeze it before it is swept."),
        (not money.amount, "There is nothing to sweep now."),
        (money.further, f"{btc(money.further)} more than one transaction takes: more sweeps follow."),
        (money.held, f"{btc(money.held)} are held by proposals."),
        (money.waiting, f"{btc(money.waiting)} are in no block yet: sweep again after it."),
        (money.small, f"{btc(money.small)} are in coins below their own fee."),
        (money.kept, f"{btc(money.kept)} stay for its tokens: hand those over, then send the coin."),
        (is_open.is_part, oldest),
        (cancels, f"{count(cancels, 'proposal is', 'proposals are')} cancelled first."),
        (
            holds,
            f"{count(holds, 'proposal keeps its', 'proposals keep their')} coins: signed, or on the way.",
        ),
        (
            forwards,
            f"{count(forwards, 'forward pays', 'forwards pay')} its old address: sweep again afterwards.",
        ),
    )
    return [words for holds_now, words in said if holds_now]
