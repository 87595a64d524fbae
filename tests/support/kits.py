"""Parses an emergency kit."""

import shlex
from dataclasses import dataclass, field

from tests.support.paged import Markup


@dataclass
class Parsed:
    """``texts``: by id. ``rows``: table rows by id, without headers. ``steps``: the commands to type."""

    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[list[str]]] = field(default_factory=dict)
    steps: dict[str, list[str]] = field(default_factory=dict)


def parsed(html: str) -> Parsed:
    found, table = Parsed(), ""
    for tag in Markup(html).tags:
        text = tag.words.strip()
        if tag.name == "table":
            table = tag.attributes.get("id", "")
            found.rows[table] = []
        elif tag.name == "tr":
            found.rows[table].append([])
        elif tag.name == "td":
            found.rows[table][-1].append(text)
        if "id" in tag.attributes:
            found.texts[tag.attributes["id"]] = text
        if "data-step" in tag.attributes:
            found.steps[tag.attributes["data-step"]] = shlex.split(text)
    found.rows = {name: [row for row in rows if row] for name, rows in found.rows.items()}
    return found
