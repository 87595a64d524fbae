"""The plan of an evacuation: the decision about each exposed vault, and the amounts that would move now.

Everything here only reads.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from sqlalchemy import Select, bindparam, case, func, or_, select, text, true
from sqlalchemy.orm import Session, aliased

from custody.advisories import Advisory, Concern
from custody.schemas import evacuations as wire
from custody.schemas.common import MAX_INT64
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.users import PermissionName
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import Invalid
from custody.server.domain.evacuation import (
    Candidate,
    ExposedSigner,
    FreeAccounts,
    ReplacementSigner,
    State,
    choose_signers,
    hash_of,
    urgency,
)
from custody.server.domain.limits import in_btc
from custody.server.service.backends import Quote
from custody.server.service.incidents.exposure import advisory_of
from custody.server.service.keys.concerned import AdvisoriesInForce, concern_of, exposing
from custody.server.service.keys.quorums import keys_that_move, unfit_to_receive
from custody.server.service.proposals.coins import VaultCoins, kept_for_tokens
from custody.server.service.proposals.drafting import Drafter, plan_of
from custody.server.service.proposals.payments import Intent, Payment
from custody.server.service.proposals.records import names_of, rate_text
from custody.server.service.stored_vaults import policy_of, sats_of
from custody.server.store.models import (
    OPEN,
    EvacuatedVault,
    Key,
    KeyAccount,
    Membership,
    Proposal,
    RolePermission,
    Signature,
    Vault,
    VaultSigner,
)
from custody.server.store.store import ids_in
from custody.text import count
from multisig import CHANGE, FeeRate, Sats, TxOut

# Leaves space for the suffix "(new 12)" in a replacement's name.
LONGEST_BASE, _NEW = 80, " (new"
# Of a vault's open proposals, the oldest: how many a plan reads, and how many ids it returns.
MOST_READ, MOST_NAMED = 1_000, 100


@dataclass(frozen=True)
class Exposed:
    """A vault with an exposed key. ``places``: its signers; ``exposed``: how many of them have one."""

    id: str
    name: str
    m: int
    maker_may_approve: bool
    places: list[ExposedSigner]
    exposed: int


@dataclass(frozen=True)
class Planned:
    """The decision about one exposed vault. Where it is not moved, ``seats`` is empty and ``cannot`` says
    why.
    """

    vault: Exposed
    name: str
    seats: tuple[ReplacementSigner, ...]
    cannot: str | None


@dataclass(frozen=True)
class Decided:
    """``vaults``: the most urgent first, in an order that does not depend on amounts, so that pages of it fit
    together. ``further``: the number of exposed vaults beyond the plan. ``new_keys``: by user and key, in how
    many replacements it stands without standing in the vault that is replaced.
    """

    vaults: tuple[Planned, ...]
    further: int
    plan_hash: str
    exposed: frozenset[str]
    candidates: Mapping[int, Candidate]
    sats: Mapping[str, int]
    new_keys: Mapping[tuple[int, str], int]

    def as_moved(self) -> list[Planned]:
        """In the order in which they are moved: among equally urgent ones the largest first."""

        def place_in_order(each: Planned) -> tuple[int, int, str]:
            vault = each.vault
            return urgency(vault.m, vault.exposed, self.sats[vault.id], vault.id)

        return sorted(self.vaults, key=place_in_order)


@dataclass(frozen=True)
class Part:
    """A page of the plan's vaults, from index ``first`` on. All other figures are of the whole plan."""

    first: int = 0
    count: int = wire.MAX_EVACUATED


def decide(
    db: Session,
    access: WorkspaceAccess,
    request: wire.EvacuationRequest,
    maker_id: int,
    in_force: Collection[Advisory],
) -> Decided:
    """The same rows give the same plan: amounts matter only for `Decided.as_moved`. ``maker_id``: the
    user who starts the evacuation, and so makes its sweeps. ``in_force``: the advisories in force; a key
    that one of them exposes is not used in a replacement.

    Raises Invalid (a key that no member has or that is in no vault; a substitute for a key that is not
    exposed, or who is not a member).
    """
    exposed = frozenset(request.exposed_keys)
    _require_known(db, access, exposed)
    if request.advisory_id is not None:
        exposed |= _concerned(db, access, request.advisory_id)
    vaults, further = _exposed_vaults(db, access, exposed)
    urgent = ids_in(db, [vault.id for vault in vaults])
    able, moved = keys_that_move(db, access.workspace_id), _moved_before(db, urgent, in_force)
    candidates = _candidates(db, access, exposed, in_force)
    _require_substitutes(db, access, request.substitutes, exposed)
    signers = {place.user_id for vault in vaults for place in vault.places}
    people = _people(db, signers | set(request.substitutes.values()))
    names = _names_of_new(db, access)
    room = FreeAccounts.of(candidates, (vault.places for vault in vaults if vault.id not in moved))
    planned = []
    for vault in vaults:
        left = sum(
            place.key_id in able and (vault.maker_may_approve or place.user_id != maker_id)
            for place in vault.places
        )
        seats: tuple[ReplacementSigner, ...] | str
        if vault.id in moved:
            seats = moved[vault.id]
        elif left < vault.m:
            seats = (
                f"Only {left} of the {vault.m} signers that it takes can still sign its sweep. The others "
                "lost their keys, or may not approve, or ask for this evacuation of a vault whose makers may "
                "not approve: then another member has to ask for it."
            )
        else:
            seats = choose_signers(vault.places, candidates, request.substitutes, room, people)
        if isinstance(seats, str):
            planned.append(Planned(vault, vault.name, (), seats))
        else:
            planned.append(Planned(vault, _free_name(vault.name, names), seats, None))
    new_keys = Counter(
        (seat.user_id, seat.key_id)
        for each in planned
        for seat in each.seats
        if all(seat.key_id != place.key_id for place in each.vault.places)
    )
    return Decided(
        tuple(planned),
        further,
        _hash(access, request, planned),
        exposed,
        candidates,
        sats_of(db, urgent),
        new_keys,
    )


def _hash(access: WorkspaceAccess, request: wire.EvacuationRequest, planned: Sequence[Planned]) -> str:
    vaults = [
        {
            "vault": each.vault.id,
            "name": each.name,
            "m": each.vault.m,
            "signers": [[seat.user_id, seat.key_id] for seat in each.seats],
        }
        for each in sorted(planned, key=lambda each: each.vault.id)
    ]
    return hash_of({"workspace": access.workspace_id, "priority": request.priority, "vaults": vaults})


def _concerned(db: Session, access: WorkspaceAccess, advisory_id: int) -> set[str]:
    """The concerned keys among the vaults' and the members' keys: none is used in a replacement. Raises
    NotFound.
    """
    advisory = advisory_of(db, advisory_id)
    keys = db.scalars(_keys_here(access))
    return {key.id for key in keys if concern_of(advisory, key) is not Concern.NOT}


def _keys_here(access: WorkspaceAccess) -> Select[Key]:
    members = select(Membership.user_id).where(Membership.workspace_id == access.workspace_id)
    signing = (
        select(VaultSigner.key_id)
        .join(Vault, Vault.id == VaultSigner.vault_id)
        .where(Vault.workspace_id == access.workspace_id)
    )
    return select(Key).where(or_(Key.user_id.in_(members), Key.id.in_(signing)))


def _require_known(db: Session, access: WorkspaceAccess, exposed: frozenset[str]) -> None:
    """A mistyped key must not pass for one that is in no vault. Raises Invalid."""
    known = _keys_here(access).with_only_columns(Key.id).where(Key.id.in_(exposed))
    if unknown := exposed - set(db.scalars(known)):
        raise Invalid.at("/exposed_keys", f"No member of this workspace has the key {min(unknown)}.")


def _require_substitutes(
    db: Session, access: WorkspaceAccess, substitutes: Mapping[str, int], exposed: Collection[str]
) -> None:
    """Raises Invalid, which names the key or the user."""
    if other := substitutes.keys() - exposed:
        raise Invalid.at("/substitutes", f"The key {min(other)} is not exposed.")
    named = set(substitutes.values())
    here = Membership.workspace_id == access.workspace_id, Membership.user_id.in_(named)
    if strangers := named - set(db.scalars(select(Membership.user_id).where(*here))):
        raise Invalid.at("/substitutes", f"No member of this workspace has the user id {min(strangers)}.")


def _exposed_vaults(
    db: Session, access: WorkspaceAccess, exposed: Collection[str]
) -> tuple[list[Exposed], int]:
    """As many as a plan has, in the order of `urgency` without amounts, and how many more there are: a
    payment to a vault must change neither which vaults are in the plan nor their signers. Raises Invalid
    where there is none.
    """
    lacks = Vault.m - func.count()
    query = (
        select(Vault.id, Vault.name, Vault.m, Vault.maker_may_approve, func.count(), func.count().over())
        .join(VaultSigner, VaultSigner.vault_id == Vault.id)
        .where(Vault.workspace_id == access.workspace_id, VaultSigner.key_id.in_(exposed))
        .group_by(Vault.id)
        .order_by(case((lacks > 0, lacks), else_=0), Vault.id)
        .limit(wire.MAX_EVACUATED)
    )
    rows = db.execute(query).all()
    if not rows:
        raise Invalid.at("/exposed_keys", "None of these keys stands in a vault of this workspace.")
    places: dict[str, list[ExposedSigner]] = defaultdict(list)
    signers = select(VaultSigner.vault_id, VaultSigner.user_id, VaultSigner.key_id)
    signers = signers.where(VaultSigner.vault_id.in_(ids_in(db, [row.id for row in rows])))
    for vault_id, user_id, key_id in db.execute(signers.order_by(VaultSigner.key_index)):
        places[vault_id].append(ExposedSigner(user_id, key_id))
    found = [
        Exposed(vault_id, name, m, maker_may, places[vault_id], exposed_there)
        for vault_id, name, m, maker_may, exposed_there, _ in rows
    ]
    return found, rows[0][-1] - len(rows)


def _candidates(
    db: Session, access: WorkspaceAccess, exposed: Collection[str], in_force: Collection[Advisory]
) -> Mapping[int, Candidate]:
    query = (
        select(Membership.user_id, Key, func.count(KeyAccount.id))
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .join(Key, Key.user_id == Membership.user_id)
        .join(KeyAccount, KeyAccount.key_id == Key.id)
        .where(
            Membership.workspace_id == access.workspace_id,
            RolePermission.permission == PermissionName.PAYMENT_APPROVE.value,
            Key.network == access.network,
            Key.status == "active",
            KeyAccount.vault_id.is_(None),
        )
        .group_by(Membership.user_id, Key.id)
    )
    return {
        user_id: Candidate(user_id, key.id, accounts)
        for user_id, key, accounts in db.execute(query)
        if key.id not in exposed and exposing(in_force, key) is None
    }


def _moved_before(db: Session, vault_ids: Select[str], in_force: Collection[Advisory]) -> Mapping[str, str]:
    """By vault, why it is not moved again: it has, or is about to get, a replacement that can take the
    coins.
    """
    query = select(EvacuatedVault).where(
        EvacuatedVault.vault_id.in_(vault_ids),
        or_(EvacuatedVault.replacement_id.is_not(None), EvacuatedVault.state == State.PLANNED.value),
    )
    rows = db.scalars(query).all()
    made = {row.replacement_id for row in rows if row.replacement_id is not None}
    unfit = unfit_to_receive(db, made, in_force)
    return {
        row.vault_id: f"The evacuation {row.evacuation_id} moves it to {row.name}: sweep it again there."
        for row in rows
        if row.replacement_id not in unfit
    }


def _names_of_new(db: Session, access: WorkspaceAccess) -> set[str]:
    """Of the workspace's vaults: those that `_free_name` could give."""
    names = select(Vault.name).where(Vault.workspace_id == access.workspace_id)
    return set(db.scalars(names.where(Vault.name.contains(_NEW))))


def _free_name(name: str, names: set[str]) -> str:
    base, number = f"{name[:LONGEST_BASE].rstrip()}{_NEW}", 1
    while (found := f"{base})" if number == 1 else f"{base} {number})") in names:
        number += 1
    names.add(found)
    return found


# --- amounts and open proposals, as of now ------------------------------------------------------------------


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
class Open:
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
    part: Part,
    in_force: AdvisoriesInForce,
) -> wire.EvacuationPlan:
    """A part beyond the end gives the last one."""
    last = max(len(decided.vaults) - 1, 0) // part.count * part.count
    first = part.first if part.first < len(decided.vaults) else last
    told = decided.vaults[first:][: part.count]
    places = [seat.instead_of for each in told for seat in each.seats if seat.instead_of is not None]
    # A caller who may not start an evacuation is not shown members who sign nothing.
    may_start = PermissionName.MANAGE_WORKSPACE in access.permissions
    free = (
        [ReplacementSigner(each.user_id, each.key_id) for each in decided.candidates.values()]
        if may_start
        else []
    )
    seats = [*free, *(seat for each in told for seat in each.seats)]
    new = decided.new_keys
    names = _people(db, {*places, *(seat.user_id for seat in seats), *(user_id for user_id, _ in new)})
    prints = _fingerprints(db, {*(seat.key_id for seat in seats), *(key_id for _, key_id in new)})
    held, ids = decided.sats, [each.vault.id for each in told]
    stored = {vault.id: vault for vault in db.scalars(select(Vault).where(Vault.id.in_(ids)))}
    is_open = open_in(db, ids, in_force, MOST_READ)
    rate = quote.rates[request.priority]
    vaults = [
        _planned(
            each,
            stored[each.vault.id],
            _money(db, stored[each.vault.id], drafter, rate, quote) if held[each.vault.id] else _Money(),
            is_open.get(each.vault.id, Open()),
            names,
            prints,
        )
        for each in told
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
    names = _people(db, {user_id for _, user_id, _, _ in rows})
    found = [
        wire.VaultKey(
            key_id=key_id, user_id=str(user_id), name=names[user_id], fingerprint=fingerprint, vaults=vaults
        )
        for key_id, user_id, fingerprint, vaults in rows
    ]
    return sorted(found, key=lambda each: (each.name, each.key_id))[: wire.MAX_EXPOSED_KEYS]


def _people(db: Session, user_ids: Collection[int]) -> Mapping[int, str]:
    return {user_id: f"member {user_id}" for user_id in user_ids} | names_of(db, user_ids)


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
) -> Mapping[str, Open]:
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
        vault_id: Open(
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
    tally = VaultCoins(vault.id, quote.tip.height).tally(db, plan)
    kept_sats, held = 0 if kept is None else kept.amount, sum(coin.amount for coin in coins)
    fee = plan.fee(len(coins), with_change=False) if coins else Sats(0)
    return _Money(
        amount=max(0, held - fee),
        fee=min(fee, held),
        further=max(0, tally.free - kept_sats - held),
        held=tally.held,
        waiting=tally.waiting,
        small=tally.small,
        kept=kept_sats,
    )


def _planned(
    each: Planned,
    vault: Vault,
    money: _Money,
    is_open: Open,
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


def _notes(vault: Vault, money: _Money, is_open: Open) -> list[str]:
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
