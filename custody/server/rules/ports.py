"""The clock and the random source, which callers pass in; and no meters."""

from datetime import datetime
from typing import Any, Final, Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The time now, in UTC."""
        ...


class RandomBytes(Protocol):
    def __call__(self, count: int, /) -> bytes:
        """Unpredictable bytes, like ``secrets.token_bytes``."""
        ...


class _Uncounted:
    """Any meter of `custody.server.meters`, where nobody reads one: it counts nothing."""

    def __getattr__(self, _name: str) -> Any:
        return self

    def __call__(self, *_args: object, **_labels: object) -> Any:
        return self


UNCOUNTED: Final[Any] = _Uncounted()
