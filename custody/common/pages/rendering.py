"""Templates to HTML, parts of a page that refresh themselves, and the fields of a form. Escaping is always
on, and an undefined name is an error.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from custody.common.pages import figures

_SHARED = Path(__file__).parent / "templates"

FORM = "application/x-www-form-urlencoded"
FORM_WITH_FILE = "multipart/form-data"
_BOUNDARY = re.compile(r"boundary=\"?([A-Za-z0-9'()+_,./:=?-]{1,70})\"?", re.ASCII)
_NAME = re.compile(rb'; name="([^"\r\n]*)"')


@dataclass(frozen=True)
class Live:
    """A part of a page that refreshes itself at each event. ``name``: its element id. ``path``: from where it
    is fetched again. ``seconds``: also at this interval, for changes that send no event.
    """

    name: str
    template: str
    path: str
    seconds: int | None = None


@dataclass(frozen=True)
class Templates:
    """The shared templates and those of one page, which lie in ``folder``."""

    folder: Path
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @cached_property
    def environment(self) -> Environment:
        made = Environment(
            loader=FileSystemLoader((self.folder, _SHARED)),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters.update(figures.FILTERS)
        made.filters.update(self.filters)
        made.globals.update(live=self._live)
        return made

    def render(self, template: str, **context: object) -> str:
        return self.environment.get_template(template).render(context)

    def live_part(
        self, live: Live, context: Mapping[str, Any], *, beside: bool = False
    ) -> tuple[Markup, str]:
        """The part's HTML and the hash of its content. ``beside``: sent along with another part, swapped out
        of band.
        """
        # What a template renders is escaped already.
        inner = Markup(self.render(live.template, **{**context, "live_path": live.path}))  # noqa: S704
        mark = hashlib.sha256(inner.encode()).hexdigest()[:16]
        join = "&" if "?" in live.path else "?"
        frame = Markup(
            '<div id="{name}" class="live" hx-get="{path}{join}seen={mark}" hx-target="this"'
            ' hx-trigger="happened from:body{often}" hx-swap="outerHTML"{beside}>{inner}</div>'
        )
        often = "" if live.seconds is None else f", every {live.seconds}s"
        oob = Markup(' hx-swap-oob="true"') if beside else ""
        return frame.format(
            name=live.name, path=live.path, join=join, mark=mark, often=often, beside=oob, inner=inner
        ), mark

    @pass_context
    def _live(self, context: Context, part: Live) -> Markup:
        """In a template: ``{{ live(part) }}``, rendered with the template's own context."""
        return self.live_part(part, context.get_all())[0]


@dataclass(frozen=True)
class Stage:
    """``when``: done, now or later."""

    words: str
    when: str


def stages(
    steps: Sequence[tuple[str, Collection[str]]], state: str, *, is_over: bool = True
) -> tuple[Stage, ...]:
    """The steps of something on its way, each with the states that it has in it; empty for a state of none.
    ``is_over``: whether the last step is done where it is reached.
    """
    at = next((n for n, (_, states) in enumerate(steps) if state in states), None)
    if at is None:
        return ()
    done = at if at < len(steps) - 1 or not is_over else len(steps)
    return tuple(
        Stage(words, "done" if n < done else "now" if n == at else "later")
        for n, (words, _) in enumerate(steps)
    )


@dataclass(frozen=True)
class Fields:
    """The values of a submitted form, by name. A checkbox that is not ticked sends none."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, content_type: str, body: bytes, most: int) -> "Fields":
        """Raises ValueError unless the body is a form of at most ``most`` fields."""
        if content_type.partition(";")[0].strip().lower() != FORM:
            raise ValueError("no form")
        return cls(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=most, errors="strict"))

    @classmethod
    def read_with_file(cls, content_type: str, body: bytes, most: int) -> "Fields":
        """Of a form that has a file (RFC 7578): its text, where one was chosen, is a value of its name. What
        is no UTF-8 in it becomes U+FFFD. Raises ValueError as `read` does.
        """
        boundary = _BOUNDARY.search(content_type)
        if content_type.partition(";")[0].strip().lower() != FORM_WITH_FILE or boundary is None:
            raise ValueError("no form with a file")
        before, *parts, end = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode(), most + 1)
        if before or not end.startswith(b"--"):
            raise ValueError("no whole form, or more than its fields")
        values: dict[str, list[str]] = {}
        for part in parts:
            head, between, content = part.partition(b"\r\n\r\n")
            name = _NAME.search(head)
            if not between or name is None:
                raise ValueError("a part without a name")
            if b"; filename=" not in head:
                text = content.decode()
            elif content:
                text = content.decode("utf-8-sig", "replace").replace("\0", "\ufffd")
            else:
                continue
            values.setdefault(name[1].decode(), []).append(text)
        return cls(values)

    def one(self, name: str, default: str = "") -> str:
        """The first value, or the default."""
        return next(iter(self.values.get(name, ())), default)

    def every(self, name: str) -> tuple[str, ...]:
        return tuple(self.values.get(name, ()))

    def ticked(self, name: str) -> bool:
        return name in self.values
