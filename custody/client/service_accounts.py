"""Accounts of programs. A program itself calls with ``Session.of_service_account(secret)``."""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.common import LATER, Few
from custody.schemas.service_accounts import (
    CreateServiceAccountRequest,
    IssueServiceSecretRequest,
    ServiceAccount,
    ServiceAccountRequest,
    ServiceSecret,
    UpdateServiceAccountRequest,
)

_ACCOUNTS = TypeAdapter(Few[ServiceAccount], config=LATER)


class ServiceAccountCalls:
    @row("GET", "/api/v1/service-accounts", _ACCOUNTS, repeatable=True)
    @staticmethod
    def service_accounts(workspace_id: int) -> Sent:
        """The newest first."""
        return Sent(query={"workspace_id": workspace_id})

    @row("GET", "/api/v1/own-service-account", ServiceAccount, repeatable=True)
    @staticmethod
    def own_service_account() -> Sent:
        """The account of the calling program."""
        return Sent()

    @row("POST", "/api/v1/create-service-account", ServiceAccount)
    @staticmethod
    def create_service_account(
        body: CreateServiceAccountRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        """It has no secret yet: ``issue_service_secret`` creates one."""
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/update-service-account", ServiceAccount)
    @staticmethod
    def update_service_account(body: UpdateServiceAccountRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/issue-service-secret", ServiceSecret)
    @staticmethod
    def issue_service_secret(body: IssueServiceSecretRequest) -> Sent:
        """The secret is shown only in this answer. Not repeated: each call creates another one."""
        return Sent(body)

    @row("POST", "/api/v1/revoke-service-account", ServiceAccount, repeatable=True)
    @staticmethod
    def revoke_service_account(body: ServiceAccountRequest) -> Sent:
        return Sent(body)
