"""Desks shared by several attacks, one for each make of device."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from signerd.journal import rows
from tests.attacks.desk import Desk, desk_with
from tests.conformance import makes, rigs


@pytest.fixture
def folder() -> Iterator[Path]:
    with rigs.short_folder() as name:
        yield Path(name)


@pytest.fixture(scope="module", params=makes.VIRTUAL, ids=makes.named)
def desk(request) -> Iterator[Desk]:
    """Shared: every proposal has coins and payees of its own, so that none affects another. Their change is
    the same, so that more are compared here than are elsewhere.
    """
    with pytest.MonkeyPatch.context() as patched, rigs.short_folder() as name:
        patched.setattr(rows, "MOST_COMPARED", 1_000)
        with desk_with(request.param, Path(name)) as found:
            yield found
