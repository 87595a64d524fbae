"""Commands that run in the tests' own process."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command sends the log to standard error, for the rest of its process."""
    yield
    structlog.reset_defaults()
