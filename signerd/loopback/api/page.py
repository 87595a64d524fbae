"""The way to the page, for whoever is at the terminal."""

from typing import Annotated

from signerd import shapes
from signerd.callers import Kind, Right
from signerd.errors import NotAllowed, PageNotServed
from signerd.loopback.access.sessions import ENTRY_SECONDS, Sessions
from signerd.loopback.api.table import By, Route, Service
from signerd.loopback.binding import In


async def enter_page(
    service: Service, sessions: Annotated[Sessions, In.STATE], caller: By
) -> shapes.PageEntry:
    """A page that could let others in would do so for whoever sits before it for a moment."""
    if caller.kind is not Kind.TERMINAL:
        raise NotAllowed("the page is opened at the command line alone", hint="Run `signerd open`.")
    url = service.page_address.url
    if url is None:
        raise PageNotServed("the page is not served")
    return shapes.PageEntry(url=url, code=sessions.entry(), seconds=ENTRY_SECONDS)


ROUTES = (Route("POST", "/page/entry", enter_page, Right.PERSON, "A code to enter the page with, good once"),)
