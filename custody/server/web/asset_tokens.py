"""Asset tokens: their records, balances and whitelists; creating them, and calling their functions."""

import time
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from custody.schemas.asset_tokens import (
    CallContractRequest,
    CallContractResponse,
    CallStatus,
    Contract,
    ContractCall,
    ContractCallsQuery,
    ContractQuery,
    ContractsQuery,
    ContractWhitelistRequest,
    CreateTokenRequest,
    CreateTokenResponse,
    ResubmitCallRequest,
    ResubmitCallResponse,
    TokenBalance,
    TokenHistory,
    TokenHistoryQuery,
    VaultTokensQuery,
    WorkspaceContractsQuery,
    WorkspaceWhitelist,
    WorkspaceWhitelistQuery,
)
from custody.schemas.common import Listed, Unreadable
from custody.schemas.permissions import VAULT_READERS, VAULT_VIEWERS, PermissionName
from custody.server.domain.errors import (
    AlreadyPaused,
    CallNotStalled,
    ChainUnavailable,
    DeploymentNotConfirmed,
    InsufficientFunds,
    LockedFunds,
    NotInAddressBook,
    NotPaused,
    PolicyUnavailable,
    RoleLimitExceeded,
    StateConflict,
    TokenCoinMissing,
    TooFewSigners,
    VaultFrozen,
    VaultLimitExceeded,
    WrongNetworkAddress,
)
from custody.server.proposals import RECHECK_SECONDS
from custody.server.service.tokens.calling import Drafted
from custody.server.service.tokens.creating import TokenDraft
from custody.server.service.tokens.index_reading import balances_in, token_history, workspace_whitelist
from custody.server.service.tokens.records import call_page, contract_page, contract_record
from custody.server.web.endpoint import Call, Endpoint, Unit, page_response
from multisig.tokens import Function

_CALLS = TypeAdapter(Listed[ContractCall])
MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
# A transfer needs PAYMENT_INIT, everything else MANAGE_WORKSPACE: checked when the function is known.
CALLERS = frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT})
PAYING = (
    ChainUnavailable,
    InsufficientFunds,
    LockedFunds,
    NotInAddressBook,
    PolicyUnavailable,
    RoleLimitExceeded,
    StateConflict,
    TokenCoinMissing,
    TooFewSigners,
    VaultFrozen,
    VaultLimitExceeded,
)
RULES = (DeploymentNotConfirmed, WrongNetworkAddress)


def contract(call: Call[ContractQuery]) -> Contract:
    """One token, with its bytecode and, once it was broadcast, the transaction that deploys it: anybody proves it from these.

    Of another workspace's token, which a vault here holds or owns, only what is public.
    """  # noqa: E501
    return contract_record(call.db, call.access, call.body.contract_uid)


def contracts(call: Call[ContractsQuery]) -> Listed[Contract]:
    """The tokens that were made from a vault, live or still collecting approvals, the oldest first."""
    return contract_page(call.db, call.access, call.body)


def workspace_contracts(call: Call[WorkspaceContractsQuery]) -> Listed[Contract]:
    """The same of all the workspace's vaults."""
    return contract_page(call.db, call.access, call.body)


def contract_calls(call: Call[ContractCallsQuery]) -> Response:
    """The workspace's calls on a token or from a vault, the oldest or the newest first. A mined call without effect is FAILED, with the rule in words."""  # noqa: E501
    page = call_page(call.db, call.access, call.body)
    return page_response(call, _CALLS, page, "uid")


def get_tokens(call: Call[VaultTokensQuery]) -> list[TokenBalance | Unreadable]:
    """What a vault holds of tokens, and which of them it owns, by the blocks that were read."""
    return balances_in(call.db, call.access, call.body.vault_id)


def get_token_history(call: Call[TokenHistoryQuery]) -> TokenHistory:
    """What a vault received of tokens and gave away, with what it held after each. Follow ``next_cursor``."""
    return token_history(call.db, call.access, call.body)


def get_workspace_whitelist(call: Call[WorkspaceWhitelistQuery]) -> WorkspaceWhitelist:
    """Who may receive the workspace's tokens while their whitelists are on: the owner, and every address on the list on chain."""  # noqa: E501
    return workspace_whitelist(call.db, call.access, call.body.contract_uid)


def resubmit(call: Call[ResubmitCallRequest]) -> ResubmitCallResponse:
    """Offers the final transaction of a stalled call to the network once more; nothing is signed again. The answer waits a
    moment for what comes of it.
    """  # noqa: E501
    services, body = call.services, call.body
    with services.store.write() as db:
        access = call.enter(db, body.workspace_id)
        answer = services.resubmitting.resubmit(db, call.caller, access, body.call_uid)
    return _after_broadcast(call, answer)


def _after_broadcast(call: Call[ResubmitCallRequest], answer: ResubmitCallResponse) -> ResubmitCallResponse:
    services, body = call.services, call.body
    deadline = time.monotonic() + services.broadcast_wait_seconds
    while (
        answer.status is CallStatus.STALLED
        and not services.tools.changes.closing
        and (left := deadline - time.monotonic()) > 0
    ):
        seen = services.tools.changes.version
        with services.store.read() as db:
            access = call.enter(db, body.workspace_id)
            answer = answer.model_copy(
                update={"status": services.resubmitting.status(db, access, body.call_uid)}
            )
        if answer.status is CallStatus.STALLED:
            services.tools.changes.wait(seen, min(left, RECHECK_SECONDS))
    return answer


def create_token(call: Call[CreateTokenRequest]) -> CreateTokenResponse:
    """Records a token and proposes its deployment from the vault, whose address is its owner. Nothing is signed and nothing
    reaches the network.
    """  # noqa: E501
    return call.services.token_creating.create(call.db, call.caller, call.access, call.body, call.prepared)


def _draft_token(call: Call[CreateTokenRequest]) -> TokenDraft:
    return call.services.token_creating.draft(call.db, call.access, call.body)


def call_contract(call: Call[CallContractRequest]) -> CallContractResponse:
    """Proposes a call of a token's function by a vault. What could only fail, behind the calls that wait, is refused with the
    rule that it would break. PAYMENT_INIT for transfer, MANAGE_WORKSPACE for all else.
    """  # noqa: E501
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
    Endpoint("GET", "/api/v1/contract", contract, Contract, VAULT_VIEWERS, Unit.READ, ContractQuery),
    Endpoint(
        "GET", "/api/v1/contracts", contracts, Listed[Contract], VAULT_VIEWERS, Unit.READ, ContractsQuery,
    ),
    Endpoint(
        "GET", "/api/v1/workspace-contracts", workspace_contracts, Listed[Contract], VAULT_VIEWERS, Unit.READ,
        WorkspaceContractsQuery,
    ),
    Endpoint(
        "GET", "/api/v1/contract-calls", contract_calls, Listed[ContractCall], VAULT_READERS, Unit.READ,
        ContractCallsQuery,
    ),
    Endpoint(
        "GET", "/api/v1/get-tokens", get_tokens, list[TokenBalance], VAULT_VIEWERS, Unit.READ,
        VaultTokensQuery, refuses=(ChainUnavailable,),
    ),
    Endpoint(
        "GET", "/api/v1/get-workspace-whitelist", get_workspace_whitelist, WorkspaceWhitelist,
        frozenset({PermissionName.PAYMENT_INIT, PermissionName.MANAGE_WORKSPACE}), Unit.READ,
        WorkspaceWhitelistQuery,
    ),
    Endpoint(
        "POST", "/api/v1/contract-calls/resubmit", resubmit, ResubmitCallResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE}), Unit.OWN, ResubmitCallRequest,
        refuses=(CallNotStalled,),
    ),
    Endpoint(
        "POST", "/api/v1/create-token", create_token, CreateTokenResponse, MANAGERS, Unit.WRITE,
        CreateTokenRequest, creates=True, prepares=_draft_token, refuses=PAYING,
    ),
    Endpoint(
        "POST", "/api/v1/call-contract", call_contract, CallContractResponse, CALLERS, Unit.WRITE,
        CallContractRequest, creates=True, prepares=_draft_call,
        refuses=(AlreadyPaused, NotPaused, *PAYING, *RULES),
    ),
    Endpoint(
        "POST", "/api/v1/add-to-contract-whitelist", _add, CallContractResponse, MANAGERS, Unit.WRITE,
        ContractWhitelistRequest, creates=True, prepares=_draft_add, refuses=(*PAYING, *RULES),
    ),
    Endpoint(
        "POST", "/api/v1/remove-from-contract-whitelist", _remove, CallContractResponse, MANAGERS, Unit.WRITE,
        ContractWhitelistRequest, creates=True, prepares=_draft_remove, refuses=(*PAYING, *RULES),
    ),
    Endpoint(
        "GET", "/api/v1/token-history", get_token_history, TokenHistory, VAULT_VIEWERS, Unit.READ,
        TokenHistoryQuery, refuses=(ChainUnavailable,),
    ),
)  # fmt: skip
