from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.webhooks import Hooked, open_hooked


@pytest.fixture
def hooked(tmp_path: Path, database: str) -> Iterator[Hooked]:
    with open_hooked(tmp_path, database) as opened:
        yield opened
