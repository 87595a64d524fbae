"""Evacuations of exposed vaults (docs/operate/incidents.md)."""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.common import LATER, Few
from custody.schemas.evacuations import (
    Evacuation,
    EvacuationPlan,
    EvacuationRequest,
    StartEvacuationRequest,
    SweepAgainRequest,
    VaultKey,
)

_KEYS = TypeAdapter(Few[VaultKey], config=LATER)
_EVACUATIONS = TypeAdapter(Few[Evacuation], config=LATER)


class EvacuationCalls:
    @row("GET", "/api/v1/vault-keys", _KEYS, repeatable=True)
    @staticmethod
    def vault_keys(workspace_id: int) -> Sent:
        """The keys of the workspace's vaults, to choose the exposed ones from."""
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/preview-evacuation", EvacuationPlan, repeatable=True)
    @staticmethod
    def preview_evacuation(body: EvacuationRequest) -> Sent:
        """The whole plan; a page of it with a ``PreviewEvacuationRequest``."""
        return Sent(body)

    @row("POST", "/api/v1/start-evacuation", Evacuation)
    @staticmethod
    def start_evacuation(body: StartEvacuationRequest) -> Sent:
        """Always refused with ``SECOND_PERSON_NEEDED``: send it to ``request_change``."""
        return Sent(body)

    @row("GET", "/api/v1/evacuations", _EVACUATIONS, repeatable=True)
    @staticmethod
    def evacuations(workspace_id: int, evacuation_id: str | None = None) -> Sent:
        """The newest first, or one."""
        return Sent(query={"workspace_id": workspace_id, "evacuation_id": evacuation_id})

    @row("POST", "/api/v1/sweep-again", Evacuation)
    @staticmethod
    def sweep_again(body: SweepAgainRequest) -> Sent:
        return Sent(body)
