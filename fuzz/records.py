"""The project's own test vectors, as seeds."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[1] / "tests" / "vectors"


def records(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))["vectors"]
    return found
