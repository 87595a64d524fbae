"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from custody.client.flow import Sent, sends
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
    ContractWhitelistRequest,
    CreateTokenRequest,
    ResubmitCallRequest,
)


class TokenCalls:
    @sends(CONTRACT)
    @staticmethod
    def contract(workspace_id: int, contract_uid: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})

    @sends(CONTRACTS)
    @staticmethod
    def contracts(
        workspace_id: int, vault_id: str, *, after: int | None = None, limit: int | None = None
    ) -> Sent:
        return Sent(
            query={"workspace_id": workspace_id, "after": after, "limit": limit, "vault_id": vault_id}
        )

    @sends(WORKSPACE_CONTRACTS)
    @staticmethod
    def workspace_contracts(workspace_id: int, *, after: int | None = None, limit: int | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "after": after, "limit": limit})

    @sends(CONTRACT_CALLS)
    @staticmethod
    def contract_calls(
        workspace_id: int,
        *,
        contract_uid: int | None = None,
        vault_id: str | None = None,
        order: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Sent:
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

    @sends(TOKENS)
    @staticmethod
    def tokens(workspace_id: int, vault_id: str) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id})

    @sends(WORKSPACE_WHITELIST)
    @staticmethod
    def workspace_whitelist(workspace_id: int, *, contract_uid: int | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})

    @sends(RESUBMIT_CONTRACT_CALL)
    @staticmethod
    def resubmit_contract_call(body: ResubmitCallRequest) -> Sent:
        return Sent(body)

    @sends(CREATE_TOKEN)
    @staticmethod
    def create_token(body: CreateTokenRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(CALL_CONTRACT)
    @staticmethod
    def call_contract(body: CallContractRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(ADD_TO_CONTRACT_WHITELIST)
    @staticmethod
    def add_to_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(REMOVE_FROM_CONTRACT_WHITELIST)
    @staticmethod
    def remove_from_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(TOKEN_HISTORY)
    @staticmethod
    def token_history(
        workspace_id: int,
        vault_id: str,
        *,
        contract_uid: int | None = None,
        order: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "contract_uid": contract_uid,
                "order": order,
                "cursor": cursor,
                "limit": limit,
            }
        )
