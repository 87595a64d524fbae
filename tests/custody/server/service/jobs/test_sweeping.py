"""One bad row must not keep everything else of the platform from expiring and being forgotten."""

import pytest

from custody.server.domain.errors import DatabaseUnavailable
from custody.server.service.jobs.tidying import Sweeps


class Part:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.ran = 0

    def run_due(self) -> int:
        self.ran += 1
        if self.error is not None:
            raise self.error
        return 2


def test_one_that_fails_keeps_none_of_the_others_and_is_heard_of() -> None:
    parts = Part(), Part(ValueError("a bad row")), Part()
    with pytest.raises(ValueError, match="a bad row"):
        Sweeps(parts).run_due()
    assert [part.ran for part in parts] == [1, 1, 1]
    assert Sweeps((parts[0], parts[2])).run_due() == 4


def test_without_the_database_none_is_tried_in_vain() -> None:
    parts = Part(DatabaseUnavailable("It is gone.")), Part()
    with pytest.raises(DatabaseUnavailable):
        Sweeps(parts).run_due()
    assert parts[1].ran == 0
