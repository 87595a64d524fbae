"""What the daemon does, its account at the platform, its settings, the chain of decisions, and what happens."""

from __future__ import annotations

from typing import Any

from signerd import shapes
from signerd.api.described import call
from signerd.asking import SILENCE_SECONDS
from signerd.callers import Right
from signerd.endpoint import PERSON_SECONDS
from signerd.shapes.limits import USUAL_ENTRIES


class AccountApi:
    @call("GET /status", Right.READ)
    def status(self) -> shapes.Status:
        """What the daemon does and what it needs"""

    # A locked keyring may ask the person before it stores the session.
    @call("POST /session", Right.PERSON, body="SignInRequest", seconds=PERSON_SECONDS)
    def sign_in(self, email: shapes.Email, password: shapes.Password) -> shapes.SignedIn:
        """Sign in to the platform"""

    @call("POST /session/code", Right.PERSON, body="CodeRequest", seconds=PERSON_SECONDS)
    def confirm_sign_in(self, code: shapes.SignInCode) -> shapes.SignedIn:
        """Finish a sign-in with the one-time code"""

    @call("DELETE /session", Right.PERSON)
    def sign_out(self) -> None:
        """Sign out"""

    @call("GET /settings", Right.PERSON)
    def settings(self) -> shapes.SettingsView:
        """The configuration and the rules, in words"""

    @call("GET /audit", Right.READ)
    def verify_audit(self) -> shapes.AuditReport:
        """Whether the chain of decisions is whole"""

    @call("GET /audit/entries", Right.PERSON)
    def audit_entries(
        self,
        after: shapes.Position | None = None,
        before: shapes.Position | None = None,
        search: shapes.EntrySearch = "",
        limit: shapes.EntryCount = USUAL_ENTRIES,
    ) -> shapes.AuditPage:
        """The chain of decisions, a page at a time

        The newest first, below ``before`` if given; with ``after`` in the chain's order from there.
        """

    @call("POST /page/entry", Right.PERSON)
    def enter_page(self) -> shapes.PageEntry:
        """A code to enter the page with, good once

        For half a minute, and over the private socket only.
        """


class EventsApi:
    """A stream, which a client reads line by line in a method of its own."""

    @call(
        "GET /events",
        Right.READ,
        headers=("last_event_id",),
        seconds=SILENCE_SECONDS,
        media_type="text/event-stream",
    )
    def follow(
        self,
        after: shapes.Position | None = None,
        subject: shapes.Id | None = None,
        last_event_id: shapes.Position | None = None,
    ) -> Any:
        """What happens, as server-sent events

        From ``last_event_id`` or ``after`` where given, else from now on.
        """
