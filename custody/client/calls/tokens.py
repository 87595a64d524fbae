"""Tokens: made, called, listed, held."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Few, Many
from custody.schemas.tokens import (
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
    WorkspaceWhitelist,
)

_CONTRACTS = TypeAdapter(Many[Contract])
_CALLS = TypeAdapter(Few[ContractCall])
_BALANCES = TypeAdapter(Many[TokenBalance])


class TokenCalls:
    @method
    @staticmethod
    def create_token(
        core: Core, body: CreateTokenRequest, *, idempotency_key: str | None = None
    ) -> Plan[CreateTokenResponse]:
        """``POST /api/v1/create-token``."""
        request = core.build("POST", "/api/v1/create-token", body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CreateTokenResponse
        )

    @method
    @staticmethod
    def call_contract(
        core: Core, body: CallContractRequest, *, idempotency_key: str | None = None
    ) -> Plan[CallContractResponse]:
        """``POST /api/v1/call-contract``."""
        request = core.build("POST", "/api/v1/call-contract", body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CallContractResponse
        )

    @method
    @staticmethod
    def add_to_contract_whitelist(
        core: Core, body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Plan[CallContractResponse]:
        """``POST /api/v1/add-to-contract-whitelist``."""
        path = "/api/v1/add-to-contract-whitelist"
        request = core.build("POST", path, body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CallContractResponse
        )

    @method
    @staticmethod
    def remove_from_contract_whitelist(
        core: Core, body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Plan[CallContractResponse]:
        """``POST /api/v1/remove-from-contract-whitelist``."""
        path = "/api/v1/remove-from-contract-whitelist"
        request = core.build("POST", path, body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CallContractResponse
        )

    @method
    @staticmethod
    def contract(core: Core, workspace_id: int, contract_uid: int) -> Plan[Contract]:
        """``GET /api/v1/contract``, with its bytecode."""
        query = {"workspace_id": workspace_id, "contract_uid": contract_uid}
        request = core.build("GET", "/api/v1/contract", query=query)
        return read((yield from call(core, request, repeatable=True)), Contract)

    @method
    @staticmethod
    def contracts(core: Core, workspace_id: int, vault_id: str) -> Plan[list[Contract]]:
        """``GET /api/v1/contracts``: those of one vault, live or still collecting approvals."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id}
        request = core.build("GET", "/api/v1/contracts", query=query)
        return read((yield from call(core, request, repeatable=True)), _CONTRACTS)

    @method
    @staticmethod
    def tokens(core: Core, workspace_id: int, vault_id: str) -> Plan[list[TokenBalance]]:
        """``GET /api/v1/get-tokens``: what one vault holds."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id}
        request = core.build("GET", "/api/v1/get-tokens", query=query)
        return read((yield from call(core, request, repeatable=True)), _BALANCES)

    @method
    @staticmethod
    def contract_calls(
        core: Core,
        workspace_id: int,
        *,
        contract_uid: int | None = None,
        vault_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Plan[list[ContractCall]]:
        """``GET /api/v1/contract-calls`` of a token or of a vault, oldest first."""
        query = {
            "workspace_id": workspace_id,
            "contract_uid": contract_uid,
            "vault_id": vault_id,
            "after": after,
            "limit": limit,
        }
        request = core.build("GET", "/api/v1/contract-calls", query=query)
        return read((yield from call(core, request, repeatable=True)), _CALLS)

    @method
    @staticmethod
    def resubmit_contract_call(core: Core, body: ResubmitCallRequest) -> Plan[ResubmitCallResponse]:
        """``POST /api/v1/contract-calls/resubmit``. Repeatable: what is on its way is not sent twice."""
        request = core.build("POST", "/api/v1/contract-calls/resubmit", body)
        return read((yield from call(core, request, repeatable=True)), ResubmitCallResponse)

    @method
    @staticmethod
    def workspace_whitelist(core: Core, workspace_id: int) -> Plan[WorkspaceWhitelist]:
        """``GET /api/v1/get-workspace-whitelist``: the lists on chain."""
        request = core.build("GET", "/api/v1/get-workspace-whitelist", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), WorkspaceWhitelist)
