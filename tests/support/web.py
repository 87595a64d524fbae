"""The client for web pages (`web/`) that `make web` built, and servers of pages that use it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.background import answering

WEB = Path(__file__).parents[2] / "web"
# Where it is set, a missing build fails the run.
REQUIRED = "SIGNERD_REQUIRE_NODE"


def require_client() -> Path:
    """The build's folder. Skips without it, or fails where it is required."""
    if shutil.which("node") and (WEB / "dist" / "index.js").exists():
        return WEB / "dist"
    words = "the web's client is not built: `make web` does it, with Node.js and npm"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(words)
    pytest.skip(words)


class _Quiet(SimpleHTTPRequestHandler):
    """`python3 -m http.server`, without its log."""

    def log_message(self, *_given: object) -> None:
        pass


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serves the folder; yields the origin."""
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))) as port:
        yield f"http://127.0.0.1:{port}"
