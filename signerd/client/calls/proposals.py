"""Proposals: seen, approved, declined."""

from collections.abc import Collection

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class ProposalCalls:
    @row("GET", "/proposals", tuple[shapes.ProposalLine, ...])
    @staticmethod
    def proposals(*, ended: bool = False) -> Asked:
        return Asked(query={"ended": "true" if ended else None})

    @row("GET", "/proposals/{psbt_id}", shapes.ProposalView)
    @staticmethod
    def proposal(psbt_id: str) -> Asked:
        return Asked({"psbt_id": psbt_id})

    @row("POST", "/proposals/{psbt_id}/approve", shapes.ProposalLine)
    @staticmethod
    def approve(psbt_id: str, digest: str, acknowledged: Collection[str] = ()) -> Asked:
        """Say yes to what ``proposal`` showed under this digest, naming the warnings that were read."""
        return Asked({"psbt_id": psbt_id}, body={"digest": digest, "acknowledged": sorted(acknowledged)})

    @row("POST", "/proposals/{psbt_id}/reject", shapes.ProposalLine)
    @staticmethod
    def reject(psbt_id: str, reason: str = "") -> Asked:
        return Asked({"psbt_id": psbt_id}, body={"reason": reason})
