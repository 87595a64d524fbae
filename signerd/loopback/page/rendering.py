"""Templates to HTML, and HTML to an answer: escaping always on, nothing undefined passes, one policy on every answer.

A *live* part is a piece of a page that the browser asks for again when something happened. It bears a mark of what it
shows, so that what did not change is neither sent nor put in the place of what somebody is filling in.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import Response

from signerd.core.states import network_words, state_words
from signerd.loopback.access.answers import PAGE_POLICY
from signerd.loopback.page import picture

TEMPLATES = Path(__file__).parent / "templates"

# Said with every answer. Nothing of a page is kept by the browser: it is of the moment, and of one person.
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": PAGE_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Live:
    """``name``: its id on the page. ``path``: where it is asked for again."""

    name: str
    template: str
    path: str


@lru_cache(maxsize=1)
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(picture.FILTERS)
    made.filters.update(state_words=state_words, network_words=network_words)
    made.globals.update(live=_live)
    return made


def render(template: str, **context: object) -> str:
    return environment().get_template(template).render(context)


def live_part(live: Live, context: Mapping[str, Any], *, beside: bool = False) -> tuple[Markup, str]:
    """The part's HTML and its mark. ``beside``: it comes with another part and finds its own place."""
    # What a template renders is escaped already.
    inner = Markup(render(live.template, **{**context, "live_path": live.path}))  # noqa: S704
    mark = hashlib.sha256(inner.encode()).hexdigest()[:16]
    join = "&" if "?" in live.path else "?"
    frame = Markup(
        '<div id="{name}" class="live" hx-get="{path}{join}seen={mark}" hx-trigger="happened from:body"'
        ' hx-target="this" hx-swap="outerHTML"{beside}>{inner}</div>'
    )
    oob = Markup(' hx-swap-oob="true"') if beside else ""
    return frame.format(name=live.name, path=live.path, join=join, mark=mark, beside=oob, inner=inner), mark


@pass_context
def _live(context: Context, live: Live) -> Markup:
    """In a template: ``{{ live(part) }}``, with all that the template itself knows."""
    return live_part(live, context.get_all())[0]


def answer(
    html: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    return Response(html, status, {**HEADERS, **headers}, HTML)
