"""The page for a caller with a session, on the daemon's own loop, without a listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser

import httpx

from signerd.callers import PAGE, LoopbackCaller
from signerd.loopback.access.headers import SCOPE_KEY
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.answers import Context
from signerd.loopback.events import Streams
from signerd.loopback.page.routes import make_page


class Seated:
    """The application with a fixed caller, which a listener would identify."""

    def __init__(self, app, caller: LoopbackCaller | None = PAGE) -> None:
        self._app, self._caller = app, caller

    async def __call__(self, scope, receive, send) -> None:
        if self._caller is not None and scope["type"] == "http":
            scope = {**scope, SCOPE_KEY: self._caller}
        await self._app(scope, receive, send)


@asynccontextmanager
async def paged(service, caller: LoopbackCaller | None = PAGE) -> AsyncIterator[httpx.AsyncClient]:
    page = make_page(partial(Context, service, Streams(), PageSessions(lambda: 0.0)))
    transport = httpx.ASGITransport(Seated(page, caller), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@dataclass
class Tag:
    name: str
    attributes: dict[str, str]
    parent: "Tag | None" = None
    words: str = ""


VOID = frozenset({"meta", "link", "img", "input", "wbr", "br", "hr"})


class Markup(HTMLParser):
    """The tags of a page in order, each with all words inside it; ``broken`` where one is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[Tag] = []
        self.broken: list[str] = []
        self._open: list[Tag] = []
        self.feed(html)
        self.close()
        self.broken += [tag.name for tag in self._open]

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(self.tags[-1])

    def handle_startendtag(self, tag, attrs):
        around = self._open[-1] if self._open else None
        self.tags.append(Tag(tag, {name: value or "" for name, value in attrs}, around))

    def handle_endtag(self, tag):
        if not self._open or self._open[-1].name != tag:
            self.broken.append(f"</{tag}>")
            return
        self._open.pop()

    def handle_data(self, data):
        for tag in self._open:
            tag.words += data

    def all(self, name: str, /, **attributes: str) -> list[Tag]:
        return [
            tag
            for tag in self.tags
            if tag.name == name and all(tag.attributes.get(key) == value for key, value in attributes.items())
        ]

    def by_id(self, identity: str) -> Tag:
        (found,) = [tag for tag in self.tags if tag.attributes.get("id") == identity]
        return found

    @property
    def words(self) -> str:
        return " ".join(self.all("html")[0].words.split()) if self.all("html") else ""


def whole(answer: httpx.Response, status: int = 200) -> Markup:
    assert answer.status_code == status, answer.text
    html = Markup(answer.text)
    assert html.broken == []
    return html


def field_of(html: Markup, name: str) -> Tag:
    (found,) = html.all("input", name=name)
    return found


def shown_words(html: Markup) -> str:
    """The visible words of a page or of a part of it."""
    return " ".join(tag.words for tag in html.tags)
