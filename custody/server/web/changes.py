"""Changes that need a second person: the organisation's rule, asking, confirming, declining.

A change is a call of another endpoint of the table, one with ``needs_second_person``.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from sqlalchemy.orm import Session

from custody.schemas.calls import CALLS
from custody.schemas.changes import (
    AppliedChange,
    Change,
    ChangeRequest,
    ChangesQuery,
    DeclineChangeRequest,
    Json,
    RequestChangeRequest,
    SecondPersonRule,
    SecondPersonRuleRequest,
)
from custody.schemas.common import Listed
from custody.schemas.permissions import ANY_MEMBER, PermissionName
from custody.schemas.queries import WorkspaceQuery
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import (
    CustodyError,
    Invalid,
    LastAdmin,
    NotFound,
    PermissionDenied,
    StateConflict,
)
from custody.server.service.people.people import enter
from custody.server.web.declared import row_of
from custody.server.web.endpoint import Call, Endpoint, Unit


def second_person_rule(call: Call[WorkspaceQuery]) -> SecondPersonRule:
    """Whether the organisation's changes of policy need a second person, and of which role."""
    return call.services.second_person.rule(call.db, call.access)


def update_second_person_rule(call: Call[SecondPersonRuleRequest]) -> SecondPersonRule:
    """Switches the rule on, by a member with all seven permissions. Once it is on, whatever changes it needs a second
    person itself.
    """  # noqa: E501
    return call.services.second_person.replace_rule(call.db, call.caller, call.access, call.body)


def request_change(call: Call[RequestChangeRequest]) -> Change:
    """Asks for a call that needs a second person: it is tried out, rolled back and recorded. Somebody else confirms it."""  # noqa: E501
    store = call.services.store
    with store.read() as db:
        call.enter(db, call.body.workspace_id)
    target = _target(call.body.path)
    request = _read(target, call.body)
    _try_out(call, target, request)
    with store.write() as db:
        access = call.enter(db, call.body.workspace_id)
        enter(db, call.caller, call.body.workspace_id, target.permissions, call.services.tools.clock())
        return call.services.second_person.ask(db, call.caller, access, target.path, request)


class _TriedOut(Exception):
    """Rolls back the call's effect."""


def _try_out(call: Call[RequestChangeRequest], target: Endpoint, request: BaseModel) -> None:
    """Makes the call in a transaction that is rolled back. Raises what the call raises."""

    def make() -> NoReturn:
        with call.services.store.write() as db:
            call.enter(db, call.body.workspace_id)
            _make(call, db, call.caller, target, request)
            raise _TriedOut

    with suppress(_TriedOut):
        make()


def changes(call: Call[ChangesQuery]) -> Listed[Change]:
    """The organisation's changes, the newest first: all for a member who may confirm, else the caller's own."""  # noqa: E501

    def may_ask(path: str, workspace_id: int) -> bool:
        with suppress(CustodyError):
            enter(call.db, call.caller, workspace_id, _target(path).permissions, call.services.tools.clock())
            return True
        return False

    second_person = call.services.second_person
    return second_person.listed(call.db, call.caller, call.access, call.body.change_id, may_ask)


def confirm_change(call: Call[ChangeRequest]) -> AppliedChange:
    """Applies a change that somebody else asked for, in their name, with every check as of now."""
    second_person = call.services.second_person
    change = second_person.to_confirm(call.db, call.caller, call.access, call.body.change_id)
    target = _target(change.path)
    assert target.takes is not None, "a call that needs a second person has a body"
    request = target.takes.model_validate(change.body)
    second_person.require_cooled(call.db, change, request)
    answer = _make(call, call.db, second_person.maker_of(call.caller, change), target, request)
    return AppliedChange(change=second_person.confirmed(call.db, call.caller, change), answer=answer)


def decline_change(call: Call[DeclineChangeRequest]) -> Change:
    """Ends a change that waits: by a member who may confirm it, or the one who asked for it."""
    return call.services.second_person.decline(call.db, call.caller, call.access, call.body)


def _make(call: Call[Any], db: Session, maker: Caller, target: Endpoint, request: BaseModel) -> Json:
    """Makes the call of another endpoint in the asker's name. Returns and raises what it does."""
    workspace_id = getattr(request, target.workspace_field)
    access = enter(db, maker, workspace_id, target.permissions, call.services.tools.clock())
    made = replace(
        call,
        endpoint=target,
        body=request,
        maybe_caller=maker,
        maybe_db=db,
        maybe_access=access,
    )
    answer: Json = TypeAdapter(target.answers).dump_python(target.handler(made), mode="json", by_alias=True)
    return answer


def _read(target: Endpoint, asked: RequestChangeRequest) -> BaseModel:
    """Raises RequestValidationError, as the call would; Invalid where it is about another workspace."""
    assert target.takes is not None, "a call that needs a second person has a body"
    try:
        request = target.takes.model_validate(asked.body)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", "body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(faults) from None
    if getattr(request, target.workspace_field) != asked.workspace_id:
        raise Invalid.at("/workspace_id", "The call in the body is about another workspace.")
    return request


def _target(path: str) -> Endpoint:
    try:
        return _by_path()[path]
    except KeyError:
        raise Invalid.at("/path", "No call at this path needs a second person.") from None


@cache
def _by_path() -> Mapping[str, Endpoint]:
    rows = (*map(row_of, CALLS), *ENDPOINTS)
    return {row.path: row for row in rows if row.needs_second_person}


ENDPOINTS = (
    Endpoint(
        "GET", "/api/v1/second-person-rule", second_person_rule, SecondPersonRule, ANY_MEMBER, Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST", "/api/v1/update-second-person-rule", update_second_person_rule, SecondPersonRule,
        frozenset({PermissionName.MANAGE_WORKSPACE}), Unit.WRITE, SecondPersonRuleRequest,
        needs_second_person=True, refuses=(LastAdmin,),
    ),
    Endpoint(
        "POST", "/api/v1/request-change", request_change, Change, ANY_MEMBER, Unit.OWN, RequestChangeRequest,
        refuses=(StateConflict,),
    ),
    Endpoint("GET", "/api/v1/changes", changes, Listed[Change], ANY_MEMBER, Unit.READ, ChangesQuery),
    Endpoint(
        "POST", "/api/v1/confirm-change", confirm_change, AppliedChange, ANY_MEMBER, Unit.WRITE,
        ChangeRequest, refuses=(LastAdmin, NotFound, PermissionDenied, StateConflict),
    ),
    Endpoint(
        "POST", "/api/v1/decline-change", decline_change, Change, ANY_MEMBER, Unit.WRITE,
        DeclineChangeRequest, refuses=(NotFound, PermissionDenied, StateConflict),
    ),
)  # fmt: skip
