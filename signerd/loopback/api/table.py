"""What a row of the table is, and what its endpoints take."""

from dataclasses import dataclass
from typing import Annotated

from signerd import shapes
from signerd.callers import Caller, Right
from signerd.daemon.service import Daemon
from signerd.loopback.binding import Endpoint, In

PREFIX = "/v1"

Service = Annotated[Daemon, In.STATE]
# Who asks, for an endpoint that tells the person or the chain of it.
By = Annotated[Caller, In.CALLER]
PathId = Annotated[shapes.Id, In.PATH]
QueryId = Annotated[shapes.Id | None, In.QUERY]


@dataclass(frozen=True)
class Route:
    """One thing that can be asked. ``needs``: what its caller must have been granted.

    ``answers``: the media type of an answer that the endpoint writes itself; None: JSON by its annotation, or no content.
    ``max_body``: bytes that its body may have, where that is more than the door lets in; its path has no parameters then.
    """

    method: str
    path: str
    endpoint: Endpoint
    needs: Right
    summary: str
    max_body: int | None = None
    answers: str | None = None
