"""PSBTs that are brought: each caller knows those that it brought itself, and the person all of them (L7, L13)."""

from typing import Protocol

from signerd.callers import Caller
from signerd.shapes import BroughtLine, BroughtView, PsbtReview


class BroughtPort(Protocol):
    """``psbt`` is base64. Another app's id is as unknown to an app as one that never was: UnknownProposal."""

    def hides(self, caller: Caller, subject: str) -> bool:
        """Whether what happens to this subject is none of the caller's business: another app brought it."""
        ...

    async def inspect(self, psbt: str, caller: Caller) -> PsbtReview:
        """What the person would be asked. Raises InvalidRequest (no base64), TooManyBrought."""
        ...

    async def bring(self, psbt: str, caller: Caller) -> BroughtView:
        """Store it and ask the person. The same transaction by the same caller is the one that it brought before.

        Raises:
            InvalidRequest, RefusedByChecks, AlreadyProposed, TooManyBrought: nothing was stored.
        """
        ...

    async def all(self, caller: Caller) -> tuple[BroughtLine, ...]: ...

    async def one(self, psbt_id: str, caller: Caller) -> BroughtView:
        """Raises UnknownProposal."""
        ...

    async def withdraw(self, psbt_id: str, caller: Caller) -> BroughtLine:
        """Take back what the caller brought. Raises UnknownProposal, IllegalEvent (decided, or at the device)."""
        ...
