"""PSBTs that a program brings: looked at, asked about, fetched signed."""

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class PsbtCalls:
    @row("POST", "/psbts/inspect", shapes.PsbtReview)
    @staticmethod
    def inspect_psbt(psbt: str) -> Asked:
        """What signing this PSBT (base64) would do. Nobody is asked."""
        return Asked(body={"psbt": psbt})

    @row("POST", "/psbts", shapes.BroughtView)
    @staticmethod
    def bring_psbt(psbt: str) -> Asked:
        """Ask the person to sign it; the same transaction again is the same one again."""
        return Asked(body={"psbt": psbt})

    @row("GET", "/psbts", tuple[shapes.BroughtLine, ...])
    @staticmethod
    def brought_psbts() -> Asked:
        return Asked()

    @row("GET", "/psbts/{psbt_id}", shapes.BroughtView)
    @staticmethod
    def brought_psbt(psbt_id: str) -> Asked:
        """How it stands, and the signed PSBT once it is there."""
        return Asked({"psbt_id": psbt_id})

    @row("DELETE", "/psbts/{psbt_id}", shapes.BroughtLine)
    @staticmethod
    def withdraw_psbt(psbt_id: str) -> Asked:
        """Take back what this program brought, where nobody has decided about it."""
        return Asked({"psbt_id": psbt_id})
