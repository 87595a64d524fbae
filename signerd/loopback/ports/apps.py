"""The port for pairing: who asks to be let in, who was, and whose token this is.

Every method may raise a leaf of SignerdError; nothing was changed then.
"""

from collections.abc import Set as AbstractSet
from typing import Protocol

from signerd.callers import Caller
from signerd.shapes.apps import AppView, Collected, Me, OpenPairing, OriginView, Pairing


class Apps(Protocol):
    # --- for the doors: from memory, at every request ----------------------------------------------------------------

    def caller(self, token: str, origin: str | None) -> Caller:
        """Whose token this is. ``origin``: the request's ``Origin``, to the byte; None where it has none.

        Raises NotPaired, in the same words for a token that is unknown, over, or another origin's (L13).
        """
        ...

    def origins(self) -> AbstractSet[str]:
        """Those that may send requests from a browser now: let in by the person, with an open request, or with a live app."""
        ...

    async def gone(self, app_id: str) -> None:
        """Returns as soon as the app may ask nothing any more: revoked, or over. What it left open ends with it."""
        ...

    # --- for an app --------------------------------------------------------------------------------------------------

    async def ask(self, name: str, rights: AbstractSet[str], origin: str | None) -> Pairing:
        """Raises InvalidRequest (the name), NotAllowed (an origin that nobody let in), AlreadyAsking, NameTaken, TooManyPairings."""
        ...

    async def collect(self, pairing_id: str, secret: str) -> Collected:
        """The person's answer; a token once. Raises UnknownPairing, also for another secret."""
        ...

    async def me(self, caller: Caller) -> Me:
        """Raises NotPaired for a stranger."""
        ...

    # --- for the person ----------------------------------------------------------------------------------------------

    async def open_requests(self) -> tuple[OpenPairing, ...]:
        """Those that wait for the person, and those that were accepted and not collected yet."""
        ...

    async def accept(
        self, pairing_id: str, code: str, *, rights: AbstractSet[str] | None, days: int
    ) -> OpenPairing:
        """Grant what was asked for, or less. Raises UnknownPairing, InvalidRequest (more rights), WrongPairingCode."""
        ...

    async def refuse(self, pairing_id: str) -> OpenPairing:
        """Also one that was accepted, until the app has collected its token. Raises UnknownPairing."""
        ...

    async def list(self) -> tuple[AppView, ...]:
        """Every app that was ever paired, the oldest first."""
        ...

    async def revoke(self, app_id: str) -> AppView:
        """Its token is worth nothing from now on. Raises UnknownApp; one that is revoked already stays so."""
        ...

    async def list_origins(self) -> tuple[OriginView, ...]: ...

    async def let_in(self, origin: str, minutes: int) -> OriginView:
        """The origin's pages may ask for so long. Raises InvalidRequest for what is no exact origin."""
        ...

    async def shut_out(self, origin: str) -> OriginView:
        """Its pages may not ask any more, and its apps are revoked. Raises InvalidRequest."""
        ...
