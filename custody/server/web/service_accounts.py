"""Accounts of programs, and which calls a program may make."""

from collections.abc import Mapping
from typing import Final

from custody.schemas.queries import WorkspaceQuery
from custody.schemas.service_accounts import (
    CreateServiceAccountRequest,
    IssueServiceSecretRequest,
    ServiceAccount,
    ServiceAccountRequest,
    ServiceSecret,
    UpdateServiceAccountRequest,
)
from custody.schemas.users import PermissionName
from custody.server.domain.errors import NotFound, PermissionDenied, StateConflict
from custody.server.web.endpoint import Auth, Call, Endpoint, Unit

MAKERS = frozenset({PermissionName.MANAGE_WORKSPACE})
KEEPERS = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.MANAGE_USERS})

# The calls that a program may make, if its rights allow. All others are for people: signing, people, roles,
# policy, whatever can need a second person, one's own account and devices. A new endpoint is closed to
# programs until it is listed here.
FOR_PROGRAMS: Final = frozenset(
    f"/api/v1/{name}"
    for name in (
        "own-service-account",
        # Reading.
        "list-wallets", "vault-names", "vault-export", "vault-controls", "max-send", "get-vault-limits",
        "check-vault-limit", "get-my-limits", "psbt", "get-whitelist-addresses", "get-workspace-whitelist",
        "get-tokens", "contract", "contracts", "workspace-contracts", "contract-calls", "vault-history",
        "vault-coins", "token-history",
        "webhook-deliveries", "get-logs", "export-audit-logs",
        # Proposing and cancelling: the vaults' signers decide.
        "create-psbt", "preview-psbt", "cancel-psbt", "create-proof", "proof", "create-token",
        "call-contract",
        "contract-calls/resubmit", "add-to-contract-whitelist", "remove-from-contract-whitelist",
        "redeliver-webhook",
    )
)  # fmt: skip


def documented(row: Endpoint) -> Mapping[str, bool]:
    """For the OpenAPI document."""
    return {"x-service-accounts": True} if row.path in FOR_PROGRAMS else {}


def require_for_programs(call: Call[None]) -> None:
    """Raises PermissionDenied where a program makes a call that is a person's."""
    is_program = call.maybe_caller is not None and call.maybe_caller.service is not None
    if is_program and call.endpoint.path not in FOR_PROGRAMS:
        raise PermissionDenied("A service account may not call this: it needs a person who is signed in.")


def service_accounts(call: Call[WorkspaceQuery]) -> list[ServiceAccount]:
    """The workspace's accounts of programs, the newest first, without their secrets."""
    return call.services.service_accounts.listed(call.db, call.access)


def own_service_account(call: Call[None]) -> ServiceAccount:
    """The account of the program that calls."""
    return call.services.service_accounts.own(call.db, call.caller)


def create_service_account(call: Call[CreateServiceAccountRequest]) -> ServiceAccount:
    """An account for a program, which acts in its maker's name with some of the maker's rights. It has no secret yet."""  # noqa: E501
    return call.services.service_accounts.create(call.db, call.caller, call.access, call.body)


def update_service_account(call: Call[UpdateServiceAccountRequest]) -> ServiceAccount:
    """Its name, rights, networks and end, by its maker."""
    return call.services.service_accounts.update(call.db, call.caller, call.access, call.body)


def issue_service_secret(call: Call[IssueServiceSecretRequest]) -> ServiceSecret:
    """A new secret, shown to the account's maker here and never again. The one before stays good for ``overlap_hours``."""  # noqa: E501
    return call.services.service_accounts.issue_secret(call.db, call.caller, call.access, call.body)


def revoke_service_account(call: Call[ServiceAccountRequest]) -> ServiceAccount:
    """Ends it at once and for good, by whichever member it was made."""
    return call.services.service_accounts.revoke(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "GET", "/api/v1/service-accounts", service_accounts, list[ServiceAccount], KEEPERS, Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "GET", "/api/v1/own-service-account", own_service_account, ServiceAccount, Auth.SIGNED_IN, Unit.READ,
        refuses=(NotFound,),
    ),
    Endpoint(
        "POST", "/api/v1/create-service-account", create_service_account, ServiceAccount, MAKERS, Unit.WRITE,
        CreateServiceAccountRequest, creates=True, needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/update-service-account", update_service_account, ServiceAccount, MAKERS, Unit.WRITE,
        UpdateServiceAccountRequest, needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/issue-service-secret", issue_service_secret, ServiceSecret, MAKERS, Unit.WRITE,
        IssueServiceSecretRequest, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/revoke-service-account", revoke_service_account, ServiceAccount, KEEPERS, Unit.WRITE,
        ServiceAccountRequest,
    ),
)  # fmt: skip
