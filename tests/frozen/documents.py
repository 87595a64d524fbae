"""Both OpenAPI documents as text, in the order in which they are served."""

import json
from pathlib import Path
from typing import Any

from signerd.endpoint import PREFIX
from signerd.loopback.answers import ROUTES
from signerd.loopback.description import describe
from tests.support.custody import open_desk


def platform_document(folder: Path) -> str:
    with open_desk(folder) as desk:
        return _text(desk.world.platform.asgi.openapi())


def loopback_document() -> str:
    return _text(describe(ROUTES, PREFIX))


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
