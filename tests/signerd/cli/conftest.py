"""Commands beside a real daemon over a scripted platform and a device that obeys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served import Outer, Served, make_outer, served_daemon


@pytest.fixture(autouse=True)
def nobodys_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never that of the person who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def outer(tmp_path: Path) -> Outer:
    return make_outer(tmp_path)


@pytest.fixture
def desk(tmp_path: Path, outer: Outer) -> Iterator[Served]:
    """Registered and pinned; "p-1" has been seen."""
    with served_daemon(tmp_path / "s", outer) as daemon:
        daemon.until(lambda: any(record.psbt_id == "p-1" for record in daemon.service.journal.records()))
        yield daemon


@pytest.fixture
def new_desk(tmp_path: Path, outer: Outer) -> Iterator[Served]:
    """Signed in, and nothing registered yet."""
    with served_daemon(tmp_path / "s", outer, prepared=False) as daemon:
        yield daemon
