"""Writes docs/understand/conformance.md anew."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.custody.spec.conformance import Comparison
from tests.custody.spec.day import live
from tests.custody.spec.page import PAGE, render
from tests.custody.spec.reading import PATH, read
from tests.custody.spec.shapes import Document

with TemporaryDirectory() as folder, live(Path(folder)) as day:
    document = Document(day.desk.world.platform.asgi.openapi())
    PAGE.write_text(render(Comparison(read(PATH.read_text()), document, day)), encoding="utf-8")
