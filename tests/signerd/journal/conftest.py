"""A journal that knows the person's keys and one pinned vault."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from signerd.journal import Journal
from tests.signerd.journal.test_journal import prepared


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with prepared(tmp_path) as opened:
        yield opened
