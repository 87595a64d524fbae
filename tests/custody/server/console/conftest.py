"""What the console's tests share: a browser of one person over the desk's platform."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import Desk


@pytest.fixture
def here(desk: Desk) -> str:
    """The path of the desk's workspace."""
    return f"/console/w/{desk.workspace_id}"


@pytest.fixture
def browse(desk: Desk) -> Iterator[Callable[[str], Visitor]]:
    """Signs a person in, by the first part of their address: ``browse("alice")``."""
    with ExitStack() as open_browsers:

        def browse(name: str) -> Visitor:
            http = open_browsers.enter_context(asgi_client(desk.world.platform.asgi))
            return Visitor(http).sign_in(f"{name}@example.org")

        yield browse
