"""The files that both pages serve: the script that is not ours is the release that the ADR names."""

import hashlib
import re
from pathlib import Path

from custody.pages import assets

ADR = Path(__file__).parents[3] / "docs" / "adr" / "0020-the-page.md"


def test_htmx_is_the_file_that_the_decision_names():
    (said,) = re.findall(r"`([0-9a-f]{64})`", ADR.read_text())
    content = (Path(assets.__file__).parent / "static" / "htmx.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == said
