"""What the rules and use cases are given from outside."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The time now, in UTC."""
        ...


class RandomBytes(Protocol):
    def __call__(self, count: int, /) -> bytes:
        """Unpredictable bytes, as ``secrets.token_bytes``."""
        ...
