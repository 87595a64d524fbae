"""Pairing: asking and collecting, for an app; answering, for the person; who is paired, and which sites may ask."""

from collections.abc import Collection

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class AppCalls:
    @row("POST", "/pairings", shapes.Pairing)
    @staticmethod
    def ask_pairing(name: str, rights: Collection[str]) -> Asked:
        """Show the answer's ``code``, and collect with its ``id`` and ``secret``."""
        return Asked(body={"name": name, "rights": sorted(rights)})

    @row("POST", "/pairings/{pairing_id}/collect", shapes.Collected)
    @staticmethod
    def collect_pairing(pairing_id: str, secret: str) -> Asked:
        """The person's answer; ask again in a second while it is "waiting". The token comes once."""
        return Asked({"pairing_id": pairing_id}, body={"secret": secret})

    @row("GET", "/pairings", tuple[shapes.OpenPairing, ...])
    @staticmethod
    def pairings() -> Asked:
        """The requests that wait for the person."""
        return Asked()

    @row("POST", "/pairings/{pairing_id}/accept", shapes.OpenPairing)
    @staticmethod
    def accept_pairing(
        pairing_id: str, code: str, rights: Collection[str] | None = None, days: int = shapes.DAYS
    ) -> Asked:
        """``rights``: fewer than were asked for; None grants all of them."""
        given = None if rights is None else sorted(rights)
        return Asked({"pairing_id": pairing_id}, body={"code": code, "rights": given, "days": days})

    @row("POST", "/pairings/{pairing_id}/refuse", shapes.OpenPairing)
    @staticmethod
    def refuse_pairing(pairing_id: str) -> Asked:
        return Asked({"pairing_id": pairing_id})

    @row("GET", "/me", shapes.Me)
    @staticmethod
    def me() -> Asked:
        """Who asks, with which rights, and until when."""
        return Asked()

    @row("GET", "/apps", tuple[shapes.AppView, ...])
    @staticmethod
    def apps() -> Asked:
        """Every app that was ever paired."""
        return Asked()

    @row("DELETE", "/apps/{app_id}", shapes.AppView)
    @staticmethod
    def revoke_app(app_id: str) -> Asked:
        return Asked({"app_id": app_id})

    @row("GET", "/origins", tuple[shapes.OriginView, ...])
    @staticmethod
    def origins() -> Asked:
        """The sites that may send requests from a browser now."""
        return Asked()

    @row("POST", "/origins", shapes.OriginView)
    @staticmethod
    def let_in(origin: str, minutes: int = shapes.LET_IN_MINUTES) -> Asked:
        """Its pages may ask to be paired for so long."""
        return Asked(body={"origin": origin, "minutes": minutes})

    @row("DELETE", "/origins", shapes.OriginView)
    @staticmethod
    def shut_out(origin: str) -> Asked:
        """Its pages may not ask any more, and its apps are revoked."""
        return Asked(query={"origin": origin})
