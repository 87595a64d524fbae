"""Parses an emergency kit."""

import shlex
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Parsed:
    """``texts``: by id. ``rows``: table rows by id, without headers. ``steps``: the commands to type."""

    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[list[str]]] = field(default_factory=dict)
    steps: dict[str, list[str]] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Parsed()
        self._open: dict[str, Any] = {}
        self._table = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = dict(attributes)
        if tag == "table":
            self._table = names.get("id") or ""
            self.found.rows.setdefault(self._table, [])
        if tag == "tr":
            self.found.rows.setdefault(self._table, []).append([])
        self._open[tag] = (names.get("id"), names.get("data-step"), [])

    def handle_data(self, data: str) -> None:
        for _id, _step, texts in self._open.values():
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        name, step, texts = self._open.pop(tag, (None, None, []))
        text = "".join(texts).strip()
        if name:
            self.found.texts[name] = text
        if step:
            self.found.steps[step] = shlex.split(text)
        if tag == "td" and self.found.rows.get(self._table):
            self.found.rows[self._table][-1].append(text)


def parsed(html: str) -> Parsed:
    reader = _Reader()
    reader.feed(html)
    rows = {name: [row for row in found if row] for name, found in reader.found.rows.items()}
    return Parsed(reader.found.texts, rows, reader.found.steps)
