"""The few files beside the HTML, from a fixed list: no path of a request ever reaches the file system."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from starlette.responses import Response

from signerd.callers import Right
from signerd.errors import NoSuchRoute
from signerd.loopback.page.rendering import HEADERS
from signerd.loopback.page.request import PageRequest, Row

STATIC = Path(__file__).parent / "static"
TYPES: Mapping[str, str] = MappingProxyType(
    {
        "htmx.min.js": "text/javascript; charset=utf-8",
        "enter.js": "text/javascript; charset=utf-8",
        "page.js": "text/javascript; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
    }
)


@lru_cache(maxsize=len(TYPES))
def _file(name: str) -> tuple[bytes, str]:
    """Its bytes and its strong ETag."""
    content = (STATIC / name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


async def asset(asked: PageRequest) -> Response:
    """PageRequest about at each load, and sent when it is another one: a newer daemon never meets an older script."""
    name = asked.request.path_params["name"]
    if name not in TYPES:
        raise NoSuchRoute("there is no such file")
    content, tag = _file(name)
    headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
    if asked.request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, headers=headers, media_type=TYPES[name])


ROWS = (Row("GET", "/static/{name}", asset, Right.ANYONE),)
