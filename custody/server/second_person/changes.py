"""Two people for policy: where an organisation has the rule, one member asks for a change, another confirms.

The change is the request of another call. It has no effect until another member, who has the role that the
rule names (`custody.server.second_person.rule`), confirms it; then the call is made in the asker's name, with
all checks as of that moment.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from sqlalchemy import ColumnElement, exists, or_, select
from sqlalchemy.orm import Session

from custody.common.text import minute
from custody.schemas import changes as wire
from custody.schemas.call import Call
from custody.schemas.calls import CONFIRMABLE
from custody.schemas.changes import (
    CHANGES,
    CONFIRM_CHANGE,
    DECLINE_CHANGE,
    REQUEST_CHANGE,
    ChangeStatus,
    Json,
)
from custody.schemas.common import Listed
from custody.server import errors
from custody.server.audit.log import AuditLog
from custody.server.calls import Ctx, In, Steps, approval_of, make, serves, serves_in_parts
from custody.server.jobs.tidying import Sweep, end_due
from custody.server.mail.waiting import tell_waiting
from custody.server.people.people import enter
from custody.server.rules.audit import Event
from custody.server.rules.credentials import PLATFORM, Caller, new_id
from custody.server.rules.ports import Clock
from custody.server.second_person.named import names_in
from custody.server.second_person.requirement import confirms, require_two
from custody.server.shown import shape_of, shown
from custody.server.store import Store
from custody.server.store.models import MembershipRow, PendingChangeRow, SecondPersonRuleRow, WorkspaceRow
from custody.server.vaults.stored import place_of

LIFETIME: Final = timedelta(days=7)
# Bounds on what an organisation, and one member of it, can store.
MAX_PENDING: Final = 100
MAX_PENDING_EACH: Final = 10
MAX_SHOWN: Final = 200

ASKED = Event("CHANGE_ASKED", "asked a second person: {path} // change {change}")
CONFIRMED = Event("CHANGE_CONFIRMED", "confirmed what {user} asked for: {path} // change {change} of {name}")
DECLINED = Event("CHANGE_DECLINED", "declined what {user} asked for: {path} // change {change} of {name}")
EXPIRED = Event(
    "CHANGE_EXPIRED", "A change expired that waited for a second person: {path} // change {change}"
)

_OVER: Final = {
    ChangeStatus.APPLIED: "The change was confirmed already.",
    ChangeStatus.DECLINED: "The change was declined already.",
    ChangeStatus.EXPIRED: "The change has expired: ask for it again if it is still wanted.",
}


@serves_in_parts(REQUEST_CHANGE)
def request_change(ctx: Ctx, request: wire.RequestChangeRequest) -> Steps[wire.Change]:
    """Raises what the call raises."""
    call = _call_at(request.path)
    call_request = _call_request(call, request)
    ctx = yield In.TRIAL
    # What confirming it would do now.
    as_asked = _in_name_of(ctx, ctx.caller, call, call_request)
    make(as_asked, call, call_request)
    ctx.db.flush()
    require_two(ctx.db, as_asked.access.organisation_id)
    ctx = yield In.WRITE
    return _store(_in_name_of(ctx, ctx.caller, call, call_request), call, call_request)


@serves(CHANGES)
def changes(ctx: Ctx, query: wire.ChangesQuery) -> Listed[wire.Change]:
    """``in_force`` only of what the caller may confirm, or could still ask for."""
    confirms = _confirms(ctx)
    visible = select(PendingChangeRow, confirms).where(
        PendingChangeRow.organisation_id == ctx.access.organisation_id,
        or_(PendingChangeRow.asked_by == ctx.caller.user_id, confirms),
    )
    if query.change_id is not None:
        visible = visible.where(PendingChangeRow.id == query.change_id)
    # What waits is all there, however many were decided since: they are fewer than are shown.
    newest = (PendingChangeRow.asked_at.desc(), PendingChangeRow.id)
    waiting_first = PendingChangeRow.status != ChangeStatus.PENDING.value
    listed = visible.with_only_columns(PendingChangeRow.id).order_by(waiting_first, *newest).limit(MAX_SHOWN)
    rows = ctx.db.execute(visible.where(PendingChangeRow.id.in_(listed)).order_by(*newest)).all()
    with_present = {change.id for change, may_confirm in rows if may_confirm or _may_ask(ctx, change)}
    shapes = partial(_shapes, ctx, with_present)
    return shown([change for change, _ in rows], shapes, "change_id", lambda change: change.id)


@serves(CONFIRM_CHANGE)
def confirm_change(ctx: Ctx, request: wire.ConfirmChangeRequest) -> wire.AppliedChange:
    change = _decidable(ctx, request.change_id)
    if not _may_confirm(ctx, change):
        raise errors.PermissionDenied(
            "Another role confirms the organisation's changes: you would need it in its first workspace."
            if _rule(ctx) is not None
            else "Your role in the change's workspace lacks the permission that the change needs."
        )
    if change.asked_by == ctx.caller.user_id:
        raise errors.NoRoleOpens("You asked for this change: another member has to confirm it.")
    before = _shape(ctx, change)
    if request.in_force is not None and before.in_force != request.in_force:
        raise errors.StateConflict("What is in force has changed since you read the change: read it again.")
    _require_cooled(ctx, change.not_before)
    call = _call_at(change.path)
    call_request = call.takes.model_validate(change.body)
    # With the trace id of the confirmation. The asker's way of signing in was checked when they asked.
    asker = replace(
        ctx.caller, user_id=change.asked_by, name=change.asked_by_name, bound_to=change.organisation_id
    )
    try:
        as_asker = _in_name_of(ctx, asker, call, call_request)
    except (errors.NotFound, errors.PermissionDenied) as error:
        raise errors.StateConflict(
            "The member who asked for this change may not make it any more: decline it, and let a member who "
            "may ask for it."
        ) from error
    # What allowed no more when it was asked for may allow more now.
    _require_cooled(ctx, change.asked_at + _cooling(as_asker, call, call_request))
    answer = make(as_asker, call, call_request)
    ctx.db.flush()
    require_two(ctx.db, change.organisation_id)
    return wire.AppliedChange(
        change=_decided(ctx, change, ChangeStatus.APPLIED, CONFIRMED, before),
        answer=call.writer.dump_python(answer, mode="json", by_alias=True),
    )


@serves(DECLINE_CHANGE)
def decline_change(ctx: Ctx, request: wire.DeclineChangeRequest) -> wire.Change:
    change = _decidable(ctx, request.change_id)
    if change.asked_by != ctx.caller.user_id and not _may_confirm(ctx, change):
        raise errors.NoRoleOpens("Only the member who asked for it, or one who may confirm it, declines it.")
    change.reason = request.reason or None
    return _decided(ctx, change, ChangeStatus.DECLINED, DECLINED, _shape(ctx, change))


def change_expiry(store: Store, clock: Clock, audit: AuditLog) -> Sweep:
    def expire(db: Session, change: PendingChangeRow) -> None:
        change.status = ChangeStatus.EXPIRED.value
        db.flush()
        workspace = place_of(db, change.workspace_id)
        audit.record(db, PLATFORM, EXPIRED, workspace, _payload(change), change=change.id, path=change.path)

    is_pending = PendingChangeRow.status == ChangeStatus.PENDING.value
    return partial(end_due, store, clock, PendingChangeRow.expires_at, is_pending, expire)


# --- the call that is asked for -----------------------------------------------------------------------------


def _call_at(path: str) -> Call[Any, Any]:
    try:
        return CONFIRMABLE[path]
    except KeyError:
        raise errors.Invalid.at("/path", "No call at this path needs a second person.") from None


def _call_request(call: Call[Any, Any], request: wire.RequestChangeRequest) -> BaseModel:
    """Raises Invalid, also where it is about another workspace."""
    try:
        call_request: BaseModel = call.takes.model_validate(request.body)
    except ValidationError as error:
        raise errors.refused(error, "/body") from None
    if getattr(call_request, call.workspace_field) != request.workspace_id:
        raise errors.Invalid.at("/workspace_id", "The call in the body is about another workspace.")
    return call_request


def _in_name_of(ctx: Ctx, caller: Caller, call: Call[Any, Any], call_request: BaseModel) -> Ctx:
    """For this call alone. Raises NotFound, PermissionDenied."""
    workspace_id = getattr(call_request, call.workspace_field)
    access = enter(ctx.db, caller, workspace_id, call.permissions, ctx.now)
    return replace(ctx, caller=caller, maybe_access=access)


def _may_ask(ctx: Ctx, change: PendingChangeRow) -> bool:
    with suppress(errors.CustodyError):
        enter(ctx.db, ctx.caller, change.workspace_id, _call_at(change.path).permissions, ctx.now)
        return True
    return False


def _cooling(ctx: Ctx, call: Call[Any, Any], call_request: BaseModel) -> timedelta:
    """How long it waits, by what is in force now: nothing where it allows no more payments, recipients or
    people who decide.
    """
    rule = _rule(ctx)
    if rule is None or not (call.cools or approval_of(call).cools(ctx, call_request)):
        return timedelta()
    return timedelta(hours=rule.cooling_off_hours)


def _require_cooled(ctx: Ctx, ready: datetime) -> None:
    if ctx.now < ready:
        raise errors.StateConflict(f"It is cooling off until {minute(ready)}.")


# --- what is stored -----------------------------------------------------------------------------------------


def _store(ctx: Ctx, call: Call[Any, Any], call_request: BaseModel) -> wire.Change:
    """The same request by the same member returns the pending change. Raises StateConflict (the rule is off,
    another change of the same record waits, or too many are pending).
    """
    now, caller = ctx.now, ctx.caller
    if _rule(ctx) is None and not call.always_two:
        raise errors.StateConflict(f"No second person is needed here: call {call.path} directly.")
    call_request = approval_of(call).in_full(ctx, call_request)
    body = call_request.model_dump(mode="json", by_alias=True, exclude_none=True)
    waiting = _waiting(ctx)
    for other in (each for each in waiting if each.path == call.path):
        if (other.asked_by, other.body) == (caller.user_id, body):
            return _shape(ctx, other)
        field = call.one_waits_for
        if field and other.body.get(field) == body[field]:
            raise errors.StateConflict(
                f"Change {other.id}, which {other.asked_by_name} asked for, waits for the same: confirm or "
                "decline it first."
            )
    if sum(each.asked_by == caller.user_id for each in waiting) >= MAX_PENDING_EACH:
        raise errors.StateConflict(f"{MAX_PENDING_EACH} changes of yours wait already: decline some of them.")
    if len(waiting) >= MAX_PENDING:
        raise errors.StateConflict(f"{MAX_PENDING} changes wait already: confirm or decline some of them.")
    change = _row(ctx, call, body, _cooling(ctx, call, call_request))
    ctx.add(change)
    ctx.event(ASKED, _payload(change), change=change.id, path=change.path)
    confirmers = select(MembershipRow.user_id).join(PendingChangeRow, confirms())
    others = confirmers.where(PendingChangeRow.id == change.id, MembershipRow.user_id != caller.user_id)
    tell_waiting(ctx.db, others, now)
    return _shape(ctx, change)


def _row(ctx: Ctx, call: Call[Any, Any], body: dict[str, Any], cooling: timedelta) -> PendingChangeRow:
    ready = ctx.now + cooling
    return PendingChangeRow(
        id=new_id(ctx.tools.random),
        organisation_id=ctx.access.organisation_id,
        workspace_id=ctx.access.workspace_id,
        path=call.path,
        body=body,
        status=ChangeStatus.PENDING.value,
        asked_by=ctx.caller.user_id,
        asked_by_name=ctx.caller.name,
        asked_at=ctx.now,
        not_before=ready,
        expires_at=ready + LIFETIME,
    )


def _rule(ctx: Ctx) -> SecondPersonRuleRow | None:
    return ctx.db.get(SecondPersonRuleRow, ctx.access.organisation_id)


def _waiting(ctx: Ctx) -> list[PendingChangeRow]:
    query = select(PendingChangeRow).where(
        PendingChangeRow.organisation_id == ctx.access.organisation_id,
        PendingChangeRow.status == ChangeStatus.PENDING.value,
        PendingChangeRow.expires_at > ctx.now,
    )
    return list(ctx.db.scalars(query))


def _confirms(ctx: Ctx) -> ColumnElement[bool]:
    """Whether the caller may confirm a change, but for their own; without a rule, in its workspace alone."""
    may: ColumnElement[bool] = exists().where(MembershipRow.user_id == ctx.caller.user_id, confirms())
    here = PendingChangeRow.workspace_id == ctx.access.workspace_id
    return may if _rule(ctx) is not None else may & here


def _may_confirm(ctx: Ctx, change: PendingChangeRow) -> bool:
    query = select(PendingChangeRow.id).where(PendingChangeRow.id == change.id, _confirms(ctx))
    return ctx.db.scalar(query) is not None


def _decidable(ctx: Ctx, change_id: str) -> PendingChangeRow:
    """Raises NotFound, StateConflict (decided or expired)."""
    change = ctx.db.get(PendingChangeRow, change_id, with_for_update=True)
    if change is None or change.organisation_id != ctx.access.organisation_id:
        raise errors.NotFound("There is no such change in this organisation.")
    require_waiting(_status(ctx, change))
    return change


def require_waiting(status: ChangeStatus) -> None:
    """Raises StateConflict."""
    if status is not ChangeStatus.PENDING:
        raise errors.StateConflict(_OVER[status], hint="See what waits for a second person now.")


def _decided(
    ctx: Ctx, change: PendingChangeRow, status: ChangeStatus, event: Event, before: wire.Change
) -> wire.Change:
    change.names, change.in_force = before.names, before.in_force
    change.status, change.decided_at = status.value, ctx.now
    change.decided_by, change.decided_by_name = ctx.caller.user_id, ctx.caller.name
    ctx.db.flush()
    facts = {"change": change.id, "path": change.path, "name": change.asked_by_name, "user": change.asked_by}
    in_workspace = replace(ctx, maybe_access=place_of(ctx.db, change.workspace_id))
    in_workspace.event(event, _payload(change), **facts)
    return _shape(ctx, change)


def _payload(change: PendingChangeRow) -> dict[str, object]:
    """The data of its webhook events, without the body, which may contain names and addresses."""
    return {
        "change_id": change.id,
        "path": change.path,
        "asked_by": change.asked_by,
        "decided_by": change.decided_by,
    }


# --- what is shown ------------------------------------------------------------------------------------------


def _status(ctx: Ctx, change: PendingChangeRow) -> ChangeStatus:
    """The effective status: a change expires by time, before a job stores that."""
    status = ChangeStatus(change.status)
    is_over = status is ChangeStatus.PENDING and ctx.now >= change.expires_at
    return ChangeStatus.EXPIRED if is_over else status


def as_change(ctx: Ctx, call: Call[Any, Any], call_request: BaseModel) -> wire.Change:
    """The call as a second person would read it, with the names of its records and what is in force. Nothing
    is stored.
    """
    body = call_request.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _shape(ctx, _row(ctx, call, body, timedelta()))


def _shape(ctx: Ctx, change: PendingChangeRow) -> wire.Change:
    (answer,) = _shapes(ctx, {change.id}, [change])
    return answer


def _shapes(ctx: Ctx, with_present: set[str], changes: Sequence[PendingChangeRow]) -> list[wire.Change]:
    """``with_present``: the ids of those that are shown with what is in force now, while they wait."""
    waiting = [each for each in changes if _status(ctx, each) is ChangeStatus.PENDING]
    names = {each.id: names_in(ctx.db, each) for each in waiting}
    in_force = _in_force(ctx, [each for each in waiting if each.id in with_present], names)
    return [
        shape_of(
            wire.Change,
            change,
            change_id=change.id,
            workspace_name=(place := ctx.db.get_one(WorkspaceRow, change.workspace_id)).name,
            network=place.network,
            chain=place.chain,
            names=names.get(change.id, change.names or {}),
            in_force=in_force.get(change.id, change.in_force or {} if change.id in with_present else {}),
            status=_status(ctx, change),
        )
        for change in changes
    ]


def _in_force(
    ctx: Ctx, changes: Sequence[PendingChangeRow], names: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, Json]]:
    """By the change's id. Nothing where the role or vault was deleted, or while limits cannot be read: such a
    change cannot be confirmed then. All of one path are read at once.
    """
    by_path: dict[str, list[PendingChangeRow]] = defaultdict(list)
    for change in changes:
        if all(field in names[change.id] for field in change.body if field in {"role_id", "vault_id"}):
            by_path[change.path].append(change)
    values_by_id: dict[str, Mapping[str, Json]] = {}
    for call in (CONFIRMABLE[path] for path in by_path if path in CONFIRMABLE):
        if (in_force := approval_of(call).in_force) is None:
            continue
        group = by_path[call.path]
        with suppress(errors.PolicyUnavailable):
            values = in_force(ctx, [call.takes.model_validate(each.body) for each in group])
            values_by_id |= {change.id: value for change, value in zip(group, values, strict=True)}
    return values_by_id
