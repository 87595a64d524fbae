"""What happened, and what happens."""

from functools import partial
from typing import Annotated

from pydantic import Field, StringConstraints

from signerd import shapes
from signerd.callers import Caller, Right
from signerd.loopback import events
from signerd.loopback.api.table import By, QueryId, Route, Service
from signerd.loopback.binding import In
from signerd.loopback.events import Streams

# A line each nanosecond for three centuries.
MAX_POSITION = 2**63 - 1

# What a person reads at once, and what a program may fetch at once.
USUAL_ENTRIES, MOST_ENTRIES = 50, 500

Place = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.QUERY]
Search = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), In.QUERY]
Limit = Annotated[int, Field(ge=1, le=MOST_ENTRIES), In.QUERY]
Position = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.QUERY]
LastEventId = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.HEADER]


async def verify_audit(service: Service) -> shapes.AuditReport:
    return await service.verify_audit()


async def audit_entries(
    service: Service,
    after: Place = None,
    before: Place = None,
    search: Search = "",
    limit: Limit = USUAL_ENTRIES,
) -> shapes.AuditPage:
    """The newest first, from below ``before`` where given; with ``after`` in the chain's order from there."""
    return await service.history.entries(search=search, limit=limit, after=after, before=before)


async def follow(
    service: Service,
    caller: By,
    streams: Annotated[Streams, In.STATE],
    after: Position = None,
    subject: QueryId = None,
    last_event_id: LastEventId = None,
) -> events.Following:
    """From ``Last-Event-ID`` or ``after``, where given; else from now on."""
    given = last_event_id if last_event_id is not None else after
    position = service.feed.last if given is None else given
    gone = None if caller.app_id is None else partial(service.apps.gone, caller.app_id)
    hides = partial(_hides, service, caller)
    lines = streams.follow(service.feed, position, subject, gone, hides)
    return events.Following(lines, streams.admit(caller.app_id))


def _hides(service: Service, caller: Caller, subject: str) -> bool:
    """An app hears nothing of what another one brought."""
    return caller.app_id is not None and service.imported.hides(caller, subject)


ROUTES = (
    Route("GET", "/audit", verify_audit, Right.READ, "Whether the chain of decisions is whole"),
    Route("GET", "/audit/entries", audit_entries, Right.PERSON, "The chain of decisions, a page at a time"),
    Route(
        "GET",
        "/events",
        follow,
        Right.READ,
        "What happens, as server-sent events",
        answers=events.MEDIA_TYPE,
    ),
)
