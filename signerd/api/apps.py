"""Pairing: an app asks and collects, the person answers; paired apps, and the origins that may ask."""

from __future__ import annotations

from signerd import shapes
from signerd.api.described import call
from signerd.callers import Right
from signerd.shapes.limits import DAYS, LET_IN_MINUTES


class AppsApi:
    # A browser sends its origin; other programs send none.
    @call("POST /pairings", Right.ANYONE, body="PairingRequest", headers=("origin",), operation="ask")
    def ask_pairing(
        self, name: shapes.NameText, rights: shapes.AppRights, origin: str | None = None
    ) -> shapes.Pairing:
        """Ask to be paired

        Show the answer's ``code``, and collect with its ``id`` and ``secret``.

        ``name``: what the person knows the app by. ``rights``: those that it needs; the person may grant fewer.
        """

    @call("POST /pairings/{pairing_id}/collect", Right.ANYONE, body="CollectRequest", operation="collect")
    def collect_pairing(self, pairing_id: shapes.Id, secret: shapes.SecretText) -> shapes.Collected:
        """The person's answer; the token, once

        Ask again in a second while it is "waiting".
        """

    @call("GET /pairings", Right.PERSON, operation="open_requests")
    def pairings(self) -> tuple[shapes.OpenPairing, ...]:
        """The requests that wait for the person, or for the app to collect"""

    @call("POST /pairings/{pairing_id}/accept", Right.PERSON, body="AcceptRequest", operation="accept")
    def accept_pairing(
        self,
        pairing_id: shapes.Id,
        code: shapes.PairingCode,
        rights: shapes.AppRights | None = None,
        days: shapes.Days = DAYS,
    ) -> shapes.OpenPairing:
        """Grant what was asked for, or less

        ``rights``: those that are granted of the ones that were asked for; None grants all of them.
        """

    @call("POST /pairings/{pairing_id}/refuse", Right.PERSON, operation="refuse")
    def refuse_pairing(self, pairing_id: shapes.Id) -> shapes.OpenPairing:
        """Grant nothing"""

    @call("GET /me", Right.ANYONE)
    def me(self) -> shapes.Me:
        """Who asks, with which rights, and until when"""

    @call("GET /apps", Right.PERSON)
    def apps(self) -> tuple[shapes.AppView, ...]:
        """The apps that were paired

        Every one that ever was.
        """

    @call("DELETE /apps/{app_id}", Right.PERSON, operation="revoke")
    def revoke_app(self, app_id: shapes.Id) -> shapes.AppView:
        """Make an app's token worth nothing"""

    @call("GET /origins", Right.PERSON)
    def origins(self) -> tuple[shapes.OriginView, ...]:
        """The sites that may send requests from a browser"""

    @call("POST /origins", Right.PERSON, body="LetInRequest")
    def let_in(
        self, origin: shapes.OriginText, minutes: shapes.LetInMinutes = LET_IN_MINUTES
    ) -> shapes.OriginView:
        """Let a site's pages ask to be paired, for minutes"""

    @call("DELETE /origins", Right.PERSON)
    def shut_out(self, origin: shapes.OriginText) -> shapes.OriginView:
        """Shut a site out, and revoke its apps"""
