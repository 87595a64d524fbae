"""What costs much and changes nothing, done once for all who ask for it at the same time (L11)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """One loop uses it. Nobody gets an answer that was begun before they asked, and one is made at a time."""

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self._begun = 0
        # Which one it was, and what it gave.
        self._last: tuple[int, T] | None = None

    async def get(self) -> T:
        """Raises as what makes it does."""
        asked = self._begun
        async with self._turn:
            if self._last is None or self._last[0] <= asked:
                self._begun += 1
                self._last = (self._begun, await self._make())
            return self._last[1]
