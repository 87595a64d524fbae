"""Figures, for a program that collects them."""

from typing import Annotated

from starlette.responses import Response

from signerd.callers import Right
from signerd.daemon.metrics import Figure
from signerd.loopback.access.door import Refused
from signerd.loopback.api.table import Route, Service
from signerd.loopback.binding import In
from signerd.loopback.events import Streams


async def metrics(
    service: Service, streams: Annotated[Streams, In.STATE], refused: Annotated[Refused, In.STATE]
) -> Response:
    # Asked for by few, and then again and again: not kept in memory before.
    from signerd.loopback.metrics_text import CONTENT_TYPE, exposition

    counts = {code: float(count) for code, count in refused.counts.items()}
    figures = (
        *await service.metrics.figures(),
        Figure("signerd_streams", "Programs that follow the events.", {"": streams.open}),
        Figure("signerd_calls_refused", "Calls that were refused.", counts, "reason", total=True),
    )
    return Response(exposition(figures), media_type=CONTENT_TYPE)


ROUTES = (
    Route(
        "GET",
        "/metrics",
        metrics,
        Right.READ,
        "Figures about the daemon, as Prometheus reads them",
        answers="text/plain",
    ),
)
