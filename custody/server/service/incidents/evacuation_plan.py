"""The plan of an evacuation: the decision about each exposed vault. Everything here only reads."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, case, func, or_, select
from sqlalchemy.orm import Session

from custody.advisories import Advisory, Concern
from custody.schemas import evacuations as wire
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
from custody.server.service.incidents.advisories import advisory_of
from custody.server.service.keys.quorums import concern_of, exposing, keys_that_move, unfit_to_receive
from custody.server.service.proposals.records import names_of
from custody.server.service.stored_vaults import sats_of
from custody.server.store.models import (
    EvacuatedVault,
    Key,
    KeyAccount,
    Membership,
    RolePermission,
    Vault,
    VaultSigner,
)
from custody.server.store.store import ids_in

# Leaves space for the suffix "(new 12)" in a replacement's name.
LONGEST_BASE, _NEW = 80, " (new"


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
    people = people_of(db, signers | set(request.substitutes.values()))
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


def people_of(db: Session, user_ids: Collection[int]) -> Mapping[int, str]:
    return {user_id: f"member {user_id}" for user_id in user_ids} | names_of(db, user_ids)
