"""Tokens: making them, and calling their functions."""

from collections.abc import Callable
from typing import Any

from custody.schemas.asset_tokens import (
    CallContractRequest,
    CallContractResponse,
    ContractWhitelistRequest,
    CreateTokenRequest,
    CreateTokenResponse,
)
from custody.schemas.users import PermissionName
from custody.server.domain.errors import (
    AlreadyPaused,
    ChainUnavailable,
    DeploymentNotConfirmed,
    InsufficientFunds,
    LockedFunds,
    NotPaused,
    PolicyUnavailable,
    RoleLimitExceeded,
    StateConflict,
    TokenCoinMissing,
    VaultLimitExceeded,
    WrongNetworkAddress,
)
from custody.server.service.tokens.calling import Drafted
from custody.server.service.tokens.creating import Blueprint
from custody.server.web.endpoint import Call, Endpoint, Unit
from multisig.tokens import Function

MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
# A transfer asks for PAYMENT_INIT, everything else for MANAGE_WORKSPACE: looked at with the function.
CALLERS = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT})
PAYING = (
    ChainUnavailable,
    InsufficientFunds,
    LockedFunds,
    PolicyUnavailable,
    RoleLimitExceeded,
    TokenCoinMissing,
    VaultLimitExceeded,
)
RULES = (DeploymentNotConfirmed, StateConflict, WrongNetworkAddress)


def create_token(call: Call[CreateTokenRequest]) -> CreateTokenResponse:
    """Records a token and proposes its deployment from the vault, whose address is its owner. Nothing is signed and nothing
    reaches the network.
    """
    return call.services.token_creating.create(call.db, call.caller, call.access, call.body, call.prepared)


def _draft_token(call: Call[CreateTokenRequest]) -> Blueprint:
    return call.services.token_creating.draft(call.db, call.access, call.body)


def call_contract(call: Call[CallContractRequest]) -> CallContractResponse:
    """Proposes a call of a token's function by a vault. What could only fail, behind the calls that wait, is refused with the
    rule that it would break. PAYMENT_INIT for transfer, MANAGE_WORKSPACE for all else.
    """
    return call.services.calling.create(call.db, call.caller, call.access, call.body, call.prepared)


def _draft_call(call: Call[CallContractRequest]) -> Drafted:
    return call.services.calling.draft(call.db, call.access, call.body)


def _lists(function: Function) -> tuple[Callable[[Call[Any]], Any], Callable[[Call[Any]], Any]]:
    def create(call: Call[ContractWhitelistRequest]) -> CallContractResponse:
        return call.services.calling.create(
            call.db, call.caller, call.access, call.body, call.prepared, function
        )

    def draft(call: Call[ContractWhitelistRequest]) -> Drafted:
        return call.services.calling.draft(call.db, call.access, call.body, function)

    create.__doc__ = f"As call-contract with {function.wire_name} and the address."
    return create, draft


_add, _draft_add = _lists(Function.ADD_TO_WHITELIST)
_remove, _draft_remove = _lists(Function.REMOVE_FROM_WHITELIST)

ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create-token",
        create_token,
        CreateTokenResponse,
        MANAGERS,
        Unit.WRITE,
        CreateTokenRequest,
        creates=True,
        prepares=_draft_token,
        refuses=PAYING,
    ),
    Endpoint(
        "POST",
        "/api/v1/call-contract",
        call_contract,
        CallContractResponse,
        CALLERS,
        Unit.WRITE,
        CallContractRequest,
        creates=True,
        prepares=_draft_call,
        refuses=(AlreadyPaused, NotPaused, *PAYING, *RULES),
    ),
    Endpoint(
        "POST",
        "/api/v1/add-to-contract-whitelist",
        _add,
        CallContractResponse,
        MANAGERS,
        Unit.WRITE,
        ContractWhitelistRequest,
        creates=True,
        prepares=_draft_add,
        refuses=(*PAYING, *RULES),
    ),
    Endpoint(
        "POST",
        "/api/v1/remove-from-contract-whitelist",
        _remove,
        CallContractResponse,
        MANAGERS,
        Unit.WRITE,
        ContractWhitelistRequest,
        creates=True,
        prepares=_draft_remove,
        refuses=(*PAYING, *RULES),
    ),
)
