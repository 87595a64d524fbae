"""Forwards of one's own money into a vault."""

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.forwards import ForwardToVaultRequest
from custody.schemas.proposals import CreatePsbtResponse


class ForwardCalls:
    @method
    @staticmethod
    def forward_to_vault(
        core: Core, body: ForwardToVaultRequest, *, idempotency_key: str | None = None
    ) -> Plan[CreatePsbtResponse]:
        """``POST /api/v1/forward-to-vault``."""
        request = core.build("POST", "/api/v1/forward-to-vault", body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CreatePsbtResponse
        )
