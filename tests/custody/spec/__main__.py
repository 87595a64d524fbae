"""Writes docs/understand/conformance.md anew, and prints the comparison field by field."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.custody.spec.conformance import Comparison
from tests.custody.spec.day import live
from tests.custody.spec.page import PAGE, details, render
from tests.custody.spec.reading import PATH, read
from tests.custody.spec.shapes import Document

with TemporaryDirectory() as folder, live(Path(folder)) as day:
    document = Document(day.desk.world.platform.asgi.openapi())
    done = Comparison(read(PATH.read_text()), document, day)
    PAGE.write_text(render(done), encoding="utf-8")
    sys.stdout.write(details(done))
