"""Rewrites the documents and words after an intended change."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frozen.documents import loopback_document, platform_document
from tests.frozen.words import words

FROZEN = Path(__file__).parent
with TemporaryDirectory() as folder:
    (FROZEN / "platform.openapi.json").write_text(platform_document(Path(folder)), encoding="utf-8")
(FROZEN / "loopback.openapi.json").write_text(loopback_document(), encoding="utf-8")
(FROZEN / "words.json").write_text(json.dumps(words(), indent=1) + "\n", encoding="utf-8")
