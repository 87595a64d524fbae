"""Two people for policy: where an organisation has the rule, one member asks for a change, another confirms.

The change is the request of the existing call, as it was sent. It has no effect until another member, who has
the role that the rule names, confirms it; then the call is made in the asker's name, with all checks as of
that moment. The rule itself is changed in the same way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import BaseModel
from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from custody.change_words import PERMISSION_WORDS
from custody.schemas import changes as wire
from custody.schemas.calls import CALLS
from custody.schemas.changes import ChangeStatus, Json
from custody.schemas.common import ApiNetwork, Listed, Unreadable
from custody.schemas.limits import UpdateRolePoliciesRequest, UpdateVaultRequest
from custody.schemas.permissions import PermissionName
from custody.schemas.service_accounts import UpdateServiceAccountRequest
from custody.schemas.vaults import UpdateVaultControlsRequest
from custody.server.domain.audit import Category
from custody.server.domain.credentials import PLATFORM, Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import (
    LastAdmin,
    NotFound,
    PermissionDenied,
    PolicyUnavailable,
    SecondPersonNeeded,
    StateConflict,
)
from custody.server.domain.limits import Cycle, SpendingPolicy, in_btc
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.tidying import Expiry
from custody.server.service.limits.limits import PolicyStore
from custody.server.service.mail.waiting import tell_waiting
from custody.server.service.people.named import names_in
from custody.server.service.people.service_accounts import widens
from custody.server.service.people.staff import confirms_in, require_owner_of, role_of_first
from custody.server.service.shown import shown
from custody.server.service.stored_vaults import place_of
from custody.server.store import Store
from custody.server.store.models import (
    Membership,
    PendingChange,
    Role,
    RolePermission,
    SecondPersonRule,
    Vault,
    Workspace,
)
from multisig import parse_btc

LIFETIME: Final = timedelta(days=7)
# Bounds on what an organisation, and one member of it, can store.
MAX_PENDING: Final = 100
MAX_PENDING_EACH: Final = 10
MAX_SHOWN: Final = 200
FEWEST: Final = 2


# Calls that always take two people. Where the organisation has no rule, another member of the workspace with
# this permission confirms.
ALWAYS: Final[Mapping[str, PermissionName]] = MappingProxyType(
    {"/api/v1/replace-vault": PermissionName.MANAGE_WORKSPACE}
)


# What the declared calls say of themselves.
_COOLING: Final = frozenset(call.takes for call in CALLS if call.cools)
# By the id of the role or vault.
Limits = Mapping[int | str, SpendingPolicy]


class SecondPerson:
    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        policies: PolicyStore,
    ) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._policies = policies

    # --- the rule -------------------------------------------------------------------------------------------

    def rule(self, db: Session, access: WorkspaceAccess) -> wire.SecondPersonRule:
        """Where it was altered outside the platform, only that it is on."""
        found = db.get(SecondPersonRule, access.organisation_id)
        if found is None:
            return wire.SecondPersonRule(org_id=access.organisation_id, is_on=False)

        def rules(some: Sequence[SecondPersonRule]) -> list[wire.SecondPersonRule]:
            return [
                wire.SecondPersonRule(
                    org_id=access.organisation_id,
                    is_on=True,
                    confirming_role_id=each.confirming_role_id,
                    role_name=_role_name(db, each),
                    cooling_off_hours=each.cooling_off_hours,
                    set_by=str(each.set_by),
                    set_at=each.set_at,
                )
                for each in some
            ]

        (answer,) = shown([found], rules, "org_id", lambda each: each.organisation_id)
        if isinstance(answer, Unreadable):
            return wire.SecondPersonRule(org_id=access.organisation_id, is_on=True)
        return answer

    def replace_rule(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.SecondPersonRuleRequest
    ) -> wire.SecondPersonRule:
        """For an owner: a member with all seven permissions. Where the rule is on, only two people get here.

        Raises PermissionDenied, NotFound (no role of the first workspace), LastAdmin (fewer than two members
        hold it).
        """
        require_owner_of(db, access.organisation_id, caller.user_id)
        found = db.get(SecondPersonRule, access.organisation_id)
        if request.confirming_role_id is None:
            said = "off"
            if found is not None:
                db.delete(found)
        else:
            role = role_of_first(db, access.organisation_id, request.confirming_role_id)
            if role is None:
                raise NotFound("There is no such role in the organisation's first workspace.")
            said = f"on, {role.name} confirms, {request.cooling_off_hours} hours of cooling off"
            values = {
                "confirming_role_id": role.id,
                "cooling_off_hours": request.cooling_off_hours,
                "set_by": caller.user_id,
                "set_at": self._clock(),
            }
            db.merge(SecondPersonRule(organisation_id=access.organisation_id, **values))
        db.flush()
        self.require_two(db, access.organisation_id)
        self._record(db, caller, access, "SECOND_PERSON_RULE_SET", said)
        return self.rule(db, access)

    def require_two(self, db: Session, organisation_id: int) -> None:
        """Where the rule is on, at least two members must be able to confirm each other's changes. Call it
        after a change of members or roles. Raises LastAdmin.
        """
        rule = db.get(SecondPersonRule, organisation_id)
        if rule is None:
            return
        holders = select(func.count()).where(Membership.role_id == rule.confirming_role_id)
        if (db.scalar(holders) or 0) < FEWEST:
            raise LastAdmin(
                f"Fewer than two members of the organisation's first workspace would have the role "
                f"{_role_name(db, rule)}, but each needs another one to confirm changes."
            )

    @staticmethod
    def require_off(db: Session, organisation_id: int, path: str) -> None:
        """Raises SecondPersonNeeded."""
        rule = db.get(SecondPersonRule, organisation_id)
        if rule is None and path in ALWAYS:
            raise SecondPersonNeeded(
                "This always needs another member to confirm it, with the permission: "
                f"{PERMISSION_WORDS[ALWAYS[path]]}."
            )
        if rule is not None:
            raise SecondPersonNeeded(
                f"In this organisation a second person, in the role {_role_name(db, rule)}, has to confirm "
                "this."
            )

    # --- changes --------------------------------------------------------------------------------------------

    def ask(
        self, db: Session, caller: Caller, access: WorkspaceAccess, path: str, request: BaseModel
    ) -> wire.Change:
        """Stores the change. The same request by the same member returns the pending change. Raises
        StateConflict (the rule is off, or too many are pending).
        """
        rule = db.get(SecondPersonRule, access.organisation_id)
        if rule is None and path not in ALWAYS:
            raise StateConflict(f"No second person is needed here: call {path} directly.")
        body = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        now = self._clock()
        waiting = self._waiting(db, access.organisation_id)
        for change in waiting:
            if (change.asked_by, change.path, change.body) == (caller.user_id, path, body):
                return self._shown(db, change)
        if sum(change.asked_by == caller.user_id for change in waiting) >= MAX_PENDING_EACH:
            raise StateConflict(f"{MAX_PENDING_EACH} changes of yours wait already: decline some of them.")
        if len(waiting) >= MAX_PENDING:
            raise StateConflict(f"{MAX_PENDING} changes wait already: confirm or decline some of them.")
        is_cooled = rule is not None and self._loosens(db, request)
        cooling = timedelta(hours=rule.cooling_off_hours if rule is not None and is_cooled else 0)
        change = PendingChange(
            id=new_id(self._random),
            organisation_id=access.organisation_id,
            workspace_id=access.workspace_id,
            path=path,
            body=body,
            status=ChangeStatus.PENDING.value,
            asked_by=caller.user_id,
            asked_by_name=caller.name,
            asked_at=now,
            not_before=now + cooling,
            expires_at=now + cooling + LIFETIME,
        )
        db.add(change)
        db.flush()
        self._record(db, caller, access, "CHANGE_ASKED", _words(change), change)
        tell_waiting(db, _confirmers(change, rule).where(Membership.user_id != caller.user_id), now)
        return self._shown(db, change)

    def listed(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        change_id: str | None,
        may_ask: Callable[[str, int], bool],
    ) -> Listed[wire.Change]:
        """The organisation's changes, the newest first, or one of them. A caller who may not confirm sees
        only their own, and ``in_force`` only where they could still ask for the change. ``may_ask``: whether
        the caller may make the call at this path in the workspace.
        """
        query = select(PendingChange).where(PendingChange.organisation_id == access.organisation_id)
        if change_id is not None:
            query = query.where(PendingChange.id == change_id)
        if db.get(SecondPersonRule, access.organisation_id) is None:
            own = [path for path, permission in ALWAYS.items() if permission in access.permissions]
            in_workspace = PendingChange.workspace_id == access.workspace_id, PendingChange.path.in_(own)
            query = query.where(or_(PendingChange.asked_by == caller.user_id, and_(*in_workspace)))
        elif not confirms_in(db, access.organisation_id, caller.user_id):
            query = query.where(PendingChange.asked_by == caller.user_id)
        query = query.order_by(PendingChange.asked_at.desc(), PendingChange.id).limit(MAX_SHOWN)
        found = list(db.scalars(query))
        with_present = [
            each
            for each in found
            if _may_confirm(db, caller, access, each) or may_ask(each.path, each.workspace_id)
        ]

        def changes(some: Sequence[PendingChange]) -> list[wire.Change]:
            return self._shown_each(db, some, [each for each in some if each in with_present])

        return shown(found, changes, "change_id", lambda change: change.id)

    def to_confirm(
        self, db: Session, caller: Caller, access: WorkspaceAccess, change_id: str
    ) -> PendingChange:
        """The change, if the caller may confirm it now.

        Raises NotFound; PermissionDenied (not the role, or their own change); StateConflict (decided,
        expired, or still cooling off).
        """
        change = self._decidable(db, access, change_id)
        if not _may_confirm(db, caller, access, change):
            raise PermissionDenied(
                "Your role in the organisation's first workspace is not the one that confirms; or, without a "
                "rule, your role in the change's workspace lacks the permission."
            )
        if change.asked_by == caller.user_id:
            raise PermissionDenied("You asked for this change: another member has to confirm it.")
        if self._clock() < change.not_before:
            raise StateConflict(f"It is cooling off until {change.not_before.isoformat(timespec='seconds')}.")
        return change

    def require_cooled(self, db: Session, change: PendingChange, request: BaseModel) -> None:
        """A change that loosened nothing when it was asked for may loosen something now. Raises
        StateConflict.
        """
        rule = db.get(SecondPersonRule, change.organisation_id)
        if rule is None or not self._loosens(db, request):
            return
        ready = change.asked_at + timedelta(hours=rule.cooling_off_hours)
        if self._clock() < ready:
            raise StateConflict(f"It is cooling off until {ready.isoformat(timespec='seconds')}.")

    def confirmed(self, db: Session, caller: Caller, change: PendingChange) -> wire.Change:
        """Call it after the call was made in the asker's name. Raises LastAdmin."""
        db.flush()
        self.require_two(db, change.organisation_id)
        return self._decided(db, caller, change, ChangeStatus.APPLIED, "CHANGE_CONFIRMED", None)

    def decline(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.DeclineChangeRequest
    ) -> wire.Change:
        """Raises NotFound, PermissionDenied, StateConflict."""
        change = self._decidable(db, access, request.change_id)
        if change.asked_by != caller.user_id and not _may_confirm(db, caller, access, change):
            raise PermissionDenied(
                "Only the member who asked for it, or one who may confirm it, declines it."
            )
        return self._decided(
            db, caller, change, ChangeStatus.DECLINED, "CHANGE_DECLINED", request.reason or None
        )

    def maker_of(self, caller: Caller, change: PendingChange) -> Caller:
        """The asker, in whose name it is applied, with the trace id of the confirmation."""
        name, bound_to = change.asked_by_name, change.organisation_id
        # The asker's way of signing in was checked when they asked.
        return replace(caller, user_id=change.asked_by, name=name, bound_to=bound_to)

    def _decidable(self, db: Session, access: WorkspaceAccess, change_id: str) -> PendingChange:
        change = db.get(PendingChange, change_id, with_for_update=True)
        if change is None or change.organisation_id != access.organisation_id:
            raise NotFound("There is no such change in this organisation.")
        status = self._status(change)
        if status is not ChangeStatus.PENDING:
            raise StateConflict(f"The change is {status}.")
        return change

    def _decided(
        self,
        db: Session,
        caller: Caller,
        change: PendingChange,
        status: ChangeStatus,
        action: str,
        reason: str | None,
    ) -> wire.Change:
        change.status, change.reason = status.value, reason
        change.decided_by, change.decided_by_name = caller.user_id, caller.name
        change.decided_at = self._clock()
        db.flush()
        who = f"asked by {change.asked_by_name} (user {change.asked_by})"
        place = place_of(db, change.workspace_id)
        self._record(db, caller, place, action, f"{_words(change)}, {who}", change)
        return self._shown(db, change)

    def _waiting(self, db: Session, organisation_id: int) -> list[PendingChange]:
        query = select(PendingChange).where(
            PendingChange.organisation_id == organisation_id,
            PendingChange.status == ChangeStatus.PENDING.value,
            PendingChange.expires_at > self._clock(),
        )
        return list(db.scalars(query))

    def _status(self, change: PendingChange) -> ChangeStatus:
        """The effective status: a change expires by time, before a job stores that."""
        status = ChangeStatus(change.status)
        is_over = status is ChangeStatus.PENDING and self._clock() >= change.expires_at
        return ChangeStatus.EXPIRED if is_over else status

    def _loosens(self, db: Session, request: BaseModel) -> bool:
        """Whether the change allows more payments, more recipients or more people who decide: a limit that is
        raised or counted in another way, a role or permission that is given, a new address, a vault that is
        no longer bound or is replaced (no limit counts such moves), the identity provider, the rule itself.
        """
        if type(request) in _COOLING:
            return True
        match request:
            case UpdateRolePoliciesRequest():
                before = self._policies.of_role(db, request.role_id)
                after = request.new_transaction_limit
                return _raises(before, after, Cycle(request.cycle_period, request.cycle_day))
            case UpdateVaultRequest():
                before = self._policies.of_vaults(db, [request.vault_id])[request.vault_id]
                is_split = before.is_per_cycle and request.per_cycle is False
                after = request.transaction_limit
                return is_split or _raises(before, after, Cycle(request.cycle_period, request.cycle_day))
            case UpdateVaultControlsRequest():
                vault = db.get_one(Vault, request.vault_id)
                is_unbound = vault.only_address_book and not request.only_address_book
                return is_unbound or (request.maker_may_approve and not vault.maker_may_approve)
            case wire.SecondPersonRuleRequest():
                return True
        return isinstance(request, UpdateServiceAccountRequest) and widens(db, request)

    def _shown(self, db: Session, change: PendingChange) -> wire.Change:
        [shown] = self._shown_each(db, [change], [change])
        return shown

    def _shown_each(
        self, db: Session, changes: Sequence[PendingChange], with_present: Sequence[PendingChange]
    ) -> list[wire.Change]:
        """``with_present``: the changes that are shown with the values that are in force now."""
        waiting = [each for each in changes if self._status(each) is ChangeStatus.PENDING]
        names = {each.id: names_in(db, each) for each in waiting}
        with_present = [each for each in with_present if each.id in names]
        limits = self._limits_of(db, with_present, names)
        in_force = {each.id: _present_values(db, each, names[each.id], limits) for each in with_present}
        return [
            wire.Change(
                change_id=change.id,
                workspace_id=change.workspace_id,
                workspace_name=db.get_one(Workspace, change.workspace_id).name,
                network=cast("ApiNetwork", place_of(db, change.workspace_id).network),
                path=change.path,
                body=change.body,
                names=names.get(change.id, {}),
                in_force=in_force.get(change.id, {}),
                status=self._status(change),
                asked_by=str(change.asked_by),
                asked_by_name=change.asked_by_name,
                asked_at=change.asked_at,
                not_before=change.not_before,
                expires_at=change.expires_at,
                decided_by=None if change.decided_by is None else str(change.decided_by),
                decided_by_name=change.decided_by_name,
                decided_at=change.decided_at,
                reason=change.reason,
            )
            for change in changes
        ]

    def _limits_of(
        self, db: Session, changes: Iterable[PendingChange], names: Mapping[str, Mapping[str, str]]
    ) -> Limits:
        """The limits of the roles and vaults that still exist: each role once and all vaults in one call, for
        the policies may be stored elsewhere. Empty while they cannot be read: such changes cannot be
        confirmed then.
        """
        wanted: dict[str, set[Any]] = {"role_id": set(), "vault_id": set()}
        for change in changes:
            field = _LIMITED.get(change.path)
            if field is not None and field in names[change.id]:
                wanted[field].add(change.body[field])
        try:
            role_ids, vault_ids = sorted(wanted["role_id"]), sorted(wanted["vault_id"])
            found: dict[int | str, SpendingPolicy] = {}
            if role_ids:
                found.update(self._policies.of_roles(db, role_ids).items())
            if vault_ids:
                found.update(self._policies.of_vaults(db, vault_ids).items())
            return found
        except PolicyUnavailable:
            return {}

    def _record(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        action: str,
        what: str,
        change: PendingChange | None = None,
    ) -> None:
        told = None if change is None else told_of(change)
        self._audit.record(db, caller, Category.PEOPLE, action, what, access=access, told=told)


# By path, the field with the id of the role or vault whose limit is changed.
_LIMITED: Final = MappingProxyType(
    {"/api/v1/update-role-policies": "role_id", "/api/v1/update-vault": "vault_id"}
)


def _present_values(
    db: Session, change: PendingChange, names: Mapping[str, str], limits: Limits
) -> dict[str, Json]:
    """The present values by field of the change's body; empty where the record was deleted or its limit
    cannot be read.
    """
    body = change.body
    match change.path.rpartition("/")[2]:
        case "update-role-policies" if body["role_id"] in limits:
            return _limit_fields("new_transaction_limit", limits[body["role_id"]])
        case "update-vault" if body["vault_id"] in limits:
            policy = limits[body["vault_id"]]
            return _limit_fields("transaction_limit", policy) | {"per_cycle": policy.is_per_cycle}
        case "update-vault-controls" if "vault_id" in names:
            vault = db.get_one(Vault, body["vault_id"])
            only, maker = vault.only_address_book, vault.maker_may_approve
            return {"only_address_book": only, "maker_may_approve": maker}
        case "update-second-person-rule":
            rule = db.get(SecondPersonRule, change.organisation_id)
            if rule is not None:
                hours = rule.cooling_off_hours
                named = _role_name(db, rule)
                return {"is_on": True, "confirming_role_id": named, "cooling_off_hours": hours}
    return {}


def change_expiry(store: Store, clock: Clock, audit: AuditLog) -> Expiry[PendingChange]:
    def due(now: datetime) -> Select[PendingChange]:
        is_over = PendingChange.status == ChangeStatus.PENDING.value, PendingChange.expires_at <= now
        return select(PendingChange).where(*is_over).order_by(PendingChange.expires_at)

    def expire(db: Session, change: PendingChange) -> None:
        change.status = ChangeStatus.EXPIRED.value
        db.flush()
        place, told = place_of(db, change.workspace_id), told_of(change)
        audit.record(db, PLATFORM, Category.PEOPLE, "CHANGE_EXPIRED", _words(change), access=place, told=told)

    return Expiry(store, clock, due, expire)


def told_of(change: PendingChange) -> dict[str, object]:
    """The data of its webhook events, without the body, which may contain names and addresses."""
    return {
        "change_id": change.id,
        "path": change.path,
        "asked_by": change.asked_by,
        "decided_by": change.decided_by,
    }


def _role_name(db: Session, rule: SecondPersonRule) -> str:
    role = db.get(Role, rule.confirming_role_id)
    return "that no longer exists" if role is None else role.name


def _may_confirm(db: Session, caller: Caller, access: WorkspaceAccess, change: PendingChange) -> bool:
    if db.get(SecondPersonRule, access.organisation_id) is not None:
        return confirms_in(db, access.organisation_id, caller.user_id)
    return change.workspace_id == access.workspace_id and ALWAYS.get(change.path) in access.permissions


def _confirmers(change: PendingChange, rule: SecondPersonRule | None) -> Select[int]:
    """The members who may confirm it; perhaps its asker too."""
    members = select(Membership.user_id).join(Role, Role.id == Membership.role_id)
    if rule is not None:
        return members.where(Role.id == rule.confirming_role_id)
    holds = RolePermission.permission == ALWAYS[change.path].value
    return members.join(RolePermission, RolePermission.role_id == Role.id).where(
        Role.workspace_id == change.workspace_id, holds
    )


def waits_for(db: Session, change: PendingChange, user_id: int) -> bool:
    """Whether the user may confirm the change."""
    rule = db.get(SecondPersonRule, change.organisation_id)
    if rule is None and change.path not in ALWAYS:
        return False
    return db.scalar(_confirmers(change, rule).where(Membership.user_id == user_id).limit(1)) is not None


def _limit_fields(limit: str, policy: SpendingPolicy) -> dict[str, Json]:
    cycle = policy.cycle
    return {limit: in_btc(policy.limit), "cycle_period": cycle.period, "cycle_day": cycle.day}


def _raises(before: SpendingPolicy, limit: str, cycle: Cycle) -> bool:
    return parse_btc(limit) > before.limit or cycle != before.cycle


def _words(change: PendingChange) -> str:
    return f"change {change.id}, {change.path}"
