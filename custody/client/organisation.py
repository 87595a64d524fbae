"""How an organisation is run: changes that need a second person, and its rule about them; its identity
provider; and accounts of programs.

Programs do not sign in through an identity provider: they sign in with a password and a code, or call with
``Session.of_service_account(secret)``.
"""

from pydantic import BaseModel, TypeAdapter

from custody.client.flow import Sent, row, wire
from custody.schemas.auth import (
    IdentityLink,
    IdentityProvider,
    IdentityProviderSecretRequest,
    RemoveIdentityProviderRequest,
    UnlinkIdentityRequest,
    UpdateIdentityProviderRequest,
)
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


_LINKS = TypeAdapter(Few[IdentityLink], config=LATER)


class IdentityCalls:
    @row("GET", "/api/v1/identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def identity_provider(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/update-identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def update_identity_provider(body: UpdateIdentityProviderRequest) -> Sent:
        """Another issuer or client is another provider: links and sessions of the former one end."""
        return Sent(body)

    @row("POST", "/api/v1/update-identity-provider-secret", IdentityProvider, repeatable=True)
    @staticmethod
    def update_identity_provider_secret(body: IdentityProviderSecretRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/remove-identity-provider", IdentityProvider, repeatable=True)
    @staticmethod
    def remove_identity_provider(body: RemoveIdentityProviderRequest) -> Sent:
        return Sent(body)

    @row("GET", "/api/v1/identity-links", _LINKS, repeatable=True)
    @staticmethod
    def identity_links(workspace_id: int) -> Sent:
        """The members whom it signs in, the oldest link first."""
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/unlink-identity", IdentityProvider, repeatable=True)
    @staticmethod
    def unlink_identity(body: UnlinkIdentityRequest) -> Sent:
        return Sent(body)
