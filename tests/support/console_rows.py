"""The console's route table for tests: the pages that links lead to, and the calls that a form makes."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urldefrag

from custody.schemas.call import Call
from custody.server.console.application import ROOT, ROWS
from custody.server.console.table import Row
from tests.support.console import Visitor

_READERS = "one|every|ticked|query|query_sats|number|cursor|vaults_to_choose"
_FIELD = re.compile(rf"""\b(?:{_READERS})\(\s*(?:page, )?"(\w+)\"""")
_PARAMETER = re.compile(r"{(\w+)(?::int)?}")
# Where a list goes on (`PageContext.read_page`).
_PLACE = re.compile(r"""read_page\((?:[^()]|\([^()]*\))*?(?:at="(\w+)"|\))""")


def path_of(row: Row, /, **known: object) -> str:
    """With the ids that are known; 1 for another."""
    return ROOT + _PARAMETER.sub(lambda found: str(known.get(found[1], 1)), row.path)


def calls_of(row: Row) -> list[Call[Any, Any]]:
    return [call for call in row.acts if call.method == "POST"]


def fields_of(row: Row) -> set[str]:
    """The names of the form fields and query parameters that the row reads."""
    pages = (page for page in (row.view, row.review, row.again) if page is not None)
    read = [source for page in pages for source in _sources(page)]
    named = {name for source in read for name in _FIELD.findall(source)}
    named |= {name or "after" for source in read for name in _PLACE.findall(source)}
    return named | {name for call in row.acts if call.shape for name in call.shape.model_fields}


def _sources(start: Callable) -> Iterator[str]:
    """The source of a function, and of those of the console that it names or was made with."""
    seen: set[Callable] = set()
    waiting: list[Callable] = [start]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        yield inspect.getsource(function)
        named = inspect.unwrap(function).__code__.co_names
        module = inspect.getmodule(function)
        made_with = [cell.cell_contents for cell in inspect.unwrap(function).__closure__ or ()]
        made_with += [each for some in made_with if isinstance(some, dict) for each in some.values()]
        waiting += [
            each
            for each in (*made_with, *(getattr(module, name, None) for name in named))
            if inspect.isfunction(each) and each.__module__.startswith("custody.server.console")
        ]


def row_of(method: str, path: str) -> Row | None:
    """The row that answers the request."""
    for row in ROWS:
        form = re.sub(r"\\?{\w+\\?}", "[^/]+", re.sub(r"{\w+:int}", "[0-9]+", row.path))
        if row.method == method and re.fullmatch(ROOT + form, path):
            return row
    return None


def walk(person: Visitor, start: str, most: int = 150) -> Iterator[str]:
    """Opens each page below ``start`` that a page links to; yields its path while it is open."""
    waiting, seen = [start], {start}
    while waiting and len(seen) < most:
        path = waiting.pop(0)
        answer = person.http.get(path, follow_redirects=True)
        person.html, person.url, person.status = answer.text, answer.url.path, answer.status_code
        person.headers = answer.headers
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        yield path
        for link in Visitor(person.http, answer.text).page.all("a"):
            target = urldefrag(link.attributes.get("href", "")).url
            if target.startswith(start) and target not in seen:
                seen.add(target)
                waiting.append(target)
