"""Signed advisories about devices, the vaults that they expose, and evacuations of those
(docs/operate/incidents.md).
"""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.advisories import AdvisoryPublisher, TakeAdvisoriesRequest, VaultExposure
from custody.schemas.common import LATER, Few, Many
from custody.schemas.evacuations import (
    Evacuation,
    EvacuationPlan,
    EvacuationRequest,
    StartEvacuationRequest,
    SweepAgainRequest,
    VaultKey,
)

_PUBLISHERS = TypeAdapter(Few[AdvisoryPublisher], config=LATER)
_EXPOSURES = TypeAdapter(Many[VaultExposure], config=LATER)


class AdvisoryCalls:
    @row("POST", "/api/v1/take-advisories", AdvisoryPublisher, repeatable=True)
    @staticmethod
    def take_advisories(body: TakeAdvisoriesRequest) -> Sent:
        """Repeatable: a list that the platform has already changes nothing."""
        return Sent(body)

    @row("GET", "/api/v1/advisories", _PUBLISHERS, repeatable=True)
    @staticmethod
    def advisories() -> Sent:
        """The newest list of each publisher that the platform's operator trusts."""
        return Sent()

    @row("GET", "/api/v1/exposures", _EXPOSURES, repeatable=True)
    @staticmethod
    def exposures(workspace_id: int, advisory_id: int) -> Sent:
        """The most exposed first, then by amount."""
        return Sent(query={"workspace_id": workspace_id, "advisory_id": advisory_id})


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
