"""Tokens: made, called, listed, held. What is to be signed is drafted outside the write lock."""

import time

from custody.schemas.asset_tokens import (
    ADD_TO_CONTRACT_WHITELIST,
    CALL_CONTRACT,
    CONTRACT,
    CONTRACT_CALLS,
    CONTRACTS,
    CREATE_TOKEN,
    REMOVE_FROM_CONTRACT_WHITELIST,
    RESUBMIT_CONTRACT_CALL,
    TOKEN_HISTORY,
    TOKENS,
    WORKSPACE_CONTRACTS,
    WORKSPACE_WHITELIST,
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
from custody.schemas.call import Page
from custody.schemas.common import Listed, Unreadable
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.proposals.signing import RECHECK_SECONDS
from custody.server.service.tokens import index_reading
from custody.server.service.tokens.records import call_page, contract_page, contract_record
from multisig.tokens import Function


@serves(CONTRACT)
def contract(ctx: Ctx, query: ContractQuery) -> Contract:
    return contract_record(ctx.db, ctx.access, query.contract_uid)


@serves(CONTRACTS)
def contracts(ctx: Ctx, query: ContractsQuery) -> Listed[Contract]:
    return contract_page(ctx.db, ctx.access, query)


@serves(WORKSPACE_CONTRACTS)
def workspace_contracts(ctx: Ctx, query: WorkspaceContractsQuery) -> Listed[Contract]:
    return contract_page(ctx.db, ctx.access, query)


@serves(CONTRACT_CALLS)
def contract_calls(ctx: Ctx, query: ContractCallsQuery) -> Page[ContractCall | Unreadable]:
    return call_page(ctx.db, ctx.access, query)


@serves(TOKENS)
def tokens(ctx: Ctx, query: VaultTokensQuery) -> Listed[TokenBalance]:
    return index_reading.balances_in(ctx.db, ctx.access, query.vault_id)


@serves(TOKEN_HISTORY)
def token_history(ctx: Ctx, query: TokenHistoryQuery) -> TokenHistory:
    return index_reading.token_history(ctx.db, ctx.access, query)


@serves(WORKSPACE_WHITELIST)
def workspace_whitelist(ctx: Ctx, query: WorkspaceWhitelistQuery) -> WorkspaceWhitelist:
    return index_reading.workspace_whitelist(ctx.db, ctx.access, query.contract_uid)


@serves_in_parts(CREATE_TOKEN)
def create_token(ctx: Ctx, request: CreateTokenRequest) -> Steps[CreateTokenResponse]:
    creating = ctx.services.token_creating
    draft = creating.draft(ctx.db, ctx.access, request)
    ctx = yield In.WRITE
    return creating.create(ctx.db, ctx.caller, ctx.access, request, draft)


@serves_in_parts(CALL_CONTRACT)
def call_contract(ctx: Ctx, request: CallContractRequest) -> Steps[CallContractResponse]:
    return _proposed(ctx, request)


@serves_in_parts(ADD_TO_CONTRACT_WHITELIST)
def add_to_contract_whitelist(ctx: Ctx, request: ContractWhitelistRequest) -> Steps[CallContractResponse]:
    return _proposed(ctx, request, Function.ADD_TO_WHITELIST)


@serves_in_parts(REMOVE_FROM_CONTRACT_WHITELIST)
def remove_from_contract_whitelist(
    ctx: Ctx, request: ContractWhitelistRequest
) -> Steps[CallContractResponse]:
    return _proposed(ctx, request, Function.REMOVE_FROM_WHITELIST)


def _proposed(
    ctx: Ctx, request: CallContractRequest | ContractWhitelistRequest, function: Function | None = None
) -> Steps[CallContractResponse]:
    """``function``: where the path names it and not the request."""
    calling = ctx.services.calling
    draft = calling.draft(ctx.db, ctx.access, request, function)
    ctx = yield In.WRITE
    return calling.create(ctx.db, ctx.caller, ctx.access, request, draft, function)


@serves_in_parts(RESUBMIT_CONTRACT_CALL, first=In.WRITE)
def resubmit_contract_call(ctx: Ctx, request: ResubmitCallRequest) -> Steps[ResubmitCallResponse]:
    resubmitting, services = ctx.services.resubmitting, ctx.services
    answer = resubmitting.resubmit(ctx.db, ctx.caller, ctx.access, request.call_uid)
    deadline = time.monotonic() + services.broadcast_wait_seconds
    while (
        answer.status is CallStatus.STALLED
        and not services.tools.changes.closing
        and (left := deadline - time.monotonic()) > 0
    ):
        seen = services.tools.changes.version
        ctx = yield In.SNAPSHOT
        status = resubmitting.status(ctx.db, ctx.access, request.call_uid)
        answer = answer.model_copy(update={"status": status})
        if answer.status is CallStatus.STALLED:
            yield In.NOTHING
            services.tools.changes.wait(seen, min(left, RECHECK_SECONDS))
    return answer
