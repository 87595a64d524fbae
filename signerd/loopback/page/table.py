"""What a row of the page's table is. An endpoint takes what was asked and answers with HTML."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from signerd.callers import Right
from signerd.loopback.page.asked import Asked

Endpoint = Callable[[Asked], Awaitable[Response]]


@dataclass(frozen=True)
class Row:
    """``needs`` PERSON: only a session of the page gets in. Paths hold ids in braces, as the interface's do."""

    method: str
    path: str
    endpoint: Endpoint
    needs: Right = Right.PERSON
