"""Changes that need a second person, and the organisation's rule about them."""

from pydantic import BaseModel, TypeAdapter

from custody.client.flow import Sent, row, wire
from custody.schemas.changes import (
    AppliedChange,
    Change,
    ChangeRequest,
    DeclineChangeRequest,
    RequestChangeRequest,
    SecondPersonRule,
    SecondPersonRuleRequest,
)
from custody.schemas.common import LATER, Few

_CHANGES = TypeAdapter(Few[Change], config=LATER)


class ChangeCalls:
    @row("GET", "/api/v1/second-person-rule", SecondPersonRule, repeatable=True)
    @staticmethod
    def second_person_rule(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/update-second-person-rule", SecondPersonRule)
    @staticmethod
    def update_second_person_rule(body: SecondPersonRuleRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/request-change", Change, repeatable=True)
    @staticmethod
    def request_change(workspace_id: int, path: str, body: BaseModel) -> Sent:
        """``path`` and ``body`` of the call that answered ``SECOND_PERSON_NEEDED``.

        Repeatable: the same request returns the pending change.
        """
        return Sent(RequestChangeRequest(workspace_id=workspace_id, path=path, body=wire(body)))

    @row("GET", "/api/v1/changes", _CHANGES, repeatable=True)
    @staticmethod
    def changes(workspace_id: int, change_id: str | None = None) -> Sent:
        """The newest first, or one with its plan."""
        return Sent(query={"workspace_id": workspace_id, "change_id": change_id})

    @row("POST", "/api/v1/confirm-change", AppliedChange)
    @staticmethod
    def confirm_change(body: ChangeRequest) -> Sent:
        """Not repeated: the second answer would be an error, because it is applied."""
        return Sent(body)

    @row("POST", "/api/v1/decline-change", Change)
    @staticmethod
    def decline_change(body: DeclineChangeRequest) -> Sent:
        """Not repeated: the second answer would be an error, because it is declined."""
        return Sent(body)
