"""The clock and the random source, which callers pass in."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The time now, in UTC."""
        ...


class RandomBytes(Protocol):
    def __call__(self, count: int, /) -> bytes:
        """Unpredictable bytes, like ``secrets.token_bytes``."""
        ...
