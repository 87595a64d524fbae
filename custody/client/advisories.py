"""Signed advisories about devices, and the vaults that they expose."""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.advisories import AdvisoryPublisher, TakeAdvisoriesRequest, VaultExposure
from custody.schemas.common import LATER, Few, Many

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
