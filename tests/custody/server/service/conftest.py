"""Desks over either database, copied from one that was set up once."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.support.custody import Desk
from tests.support.prepared import Prepared, prepare, reopen

DEPOSITS = (100_000, 200_000, 400_000)


class Copies:
    """Of each kind of database one that is set up, with deposits or without."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._prepare = cache(self._make)

    def fill(self, database: str, *, is_funded: bool) -> Prepared:
        """The database at that URL becomes a copy."""
        url = make_url(database)
        kind = url.get_backend_name()
        assert url.database is not None
        name, prepared = self._prepare(kind, is_funded)
        if kind == "sqlite":
            shutil.copy(name, url.database)
        else:
            self._request.getfixturevalue("postgresql").replace(url.database, name)
        return prepared

    def _make(self, kind: str, is_funded: bool) -> tuple[str, Prepared]:
        name = "funded" if is_funded else "desk"
        state, deposits = self._folder / f"{kind}-{name}", DEPOSITS if is_funded else ()
        if kind == "sqlite":
            file = self._folder / f"{name}.db"
            shutil.copy(self._request.getfixturevalue("with_tables"), file)
            return str(file), prepare(state, f"sqlite:///{file}", deposits)
        server = self._request.getfixturevalue("postgresql")
        server.replace(name)
        return name, prepare(state, server.url(name), deposits)


@pytest.fixture(scope="session")
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(request, tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, database: str, copies: Copies) -> Iterator[Desk]:
    prepared = copies.fill(database, is_funded="funded" in request.fixturenames)
    with reopen(prepared, tmp_path / "state", database) as opened:
        yield opened


@pytest.fixture
def funded(desk: Desk) -> Desk:
    """A vault with three confirmed deposits."""
    return desk
