"""Tokens: made, called, listed, held."""

from typing import Literal

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.asset_tokens import (
    CallContractRequest,
    CallContractResponse,
    Contract,
    ContractCall,
    ContractWhitelistRequest,
    CreateTokenRequest,
    CreateTokenResponse,
    ResubmitCallRequest,
    ResubmitCallResponse,
    TokenBalance,
    TokenHistory,
    WorkspaceWhitelist,
)
from custody.schemas.common import LATER, Few, Many

_CONTRACTS = TypeAdapter(Many[Contract], config=LATER)
_CALLS = TypeAdapter(Few[ContractCall], config=LATER)
_BALANCES = TypeAdapter(Many[TokenBalance], config=LATER)


class TokenCalls:
    @row("POST", "/api/v1/create-token", CreateTokenResponse)
    @staticmethod
    def create_token(body: CreateTokenRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/call-contract", CallContractResponse)
    @staticmethod
    def call_contract(body: CallContractRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/add-to-contract-whitelist", CallContractResponse)
    @staticmethod
    def add_to_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/remove-from-contract-whitelist", CallContractResponse)
    @staticmethod
    def remove_from_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("GET", "/api/v1/contract", Contract, repeatable=True)
    @staticmethod
    def contract(workspace_id: int, contract_uid: int) -> Sent:
        """With its bytecode."""
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})

    @row("GET", "/api/v1/token-history", TokenHistory, repeatable=True)
    @staticmethod
    def token_history(
        workspace_id: int,
        vault_id: str,
        *,
        contract_uid: int | None = None,
        order: Literal["newest", "oldest"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Sent:
        """One page; go on with ``next_cursor``."""
        which = {"workspace_id": workspace_id, "vault_id": vault_id, "contract_uid": contract_uid}
        return Sent(query={**which, "order": order, "cursor": cursor, "limit": limit})

    @row("GET", "/api/v1/contracts", _CONTRACTS, repeatable=True)
    @staticmethod
    def contracts(
        workspace_id: int, vault_id: str, *, after: int | None = None, limit: int | None = None
    ) -> Sent:
        """Those of one vault, live or still collecting approvals."""
        return Sent(
            query={"workspace_id": workspace_id, "vault_id": vault_id, "after": after, "limit": limit}
        )

    @row("GET", "/api/v1/workspace-contracts", _CONTRACTS, repeatable=True)
    @staticmethod
    def workspace_contracts(workspace_id: int, *, after: int | None = None, limit: int | None = None) -> Sent:
        """Those of all the workspace's vaults."""
        return Sent(query={"workspace_id": workspace_id, "after": after, "limit": limit})

    @row("GET", "/api/v1/get-tokens", _BALANCES, repeatable=True)
    @staticmethod
    def tokens(workspace_id: int, vault_id: str) -> Sent:
        """What one vault holds."""
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id})

    @row("GET", "/api/v1/contract-calls", _CALLS, repeatable=True)
    @staticmethod
    def contract_calls(
        workspace_id: int,
        *,
        contract_uid: int | None = None,
        vault_id: str | None = None,
        order: Literal["newest", "oldest"] | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Sent:
        """Of a token or of a vault, the oldest first unless asked otherwise."""
        return Sent(
            query={
                "workspace_id": workspace_id,
                "contract_uid": contract_uid,
                "vault_id": vault_id,
                "order": order,
                "after": after,
                "limit": limit,
            }
        )

    @row("POST", "/api/v1/contract-calls/resubmit", ResubmitCallResponse, repeatable=True)
    @staticmethod
    def resubmit_contract_call(body: ResubmitCallRequest) -> Sent:
        """Repeatable: what is on its way is not sent twice."""
        return Sent(body)

    @row("GET", "/api/v1/get-workspace-whitelist", WorkspaceWhitelist, repeatable=True)
    @staticmethod
    def workspace_whitelist(workspace_id: int, *, contract_uid: int | None = None) -> Sent:
        """The lists on chain, of all tokens or of one."""
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})
