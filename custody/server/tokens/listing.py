"""What is shown of tokens and their calls."""

from custody.schemas.asset_tokens import (
    CONTRACT,
    CONTRACT_CALLS,
    CONTRACTS,
    TOKEN_HISTORY,
    TOKENS,
    WORKSPACE_CONTRACTS,
    WORKSPACE_WHITELIST,
    Contract,
    ContractCall,
    ContractCallsQuery,
    ContractQuery,
    ContractsQuery,
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
from custody.server.calls import Ctx, serves
from custody.server.tokens import index_reading
from custody.server.tokens.records import call_page, contract_page, contract_record


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
