"""A platform in the test's own process, and ``custody`` as its client."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from custody.cli.desk import CommandDependencies
from custody.cli.program import app
from tests.support.custody import Desk, open_desk
from tests.support.platform import PASSWORD
from tests.support.sdk import through

PLATFORM = "https://custody.example"
Custody = Callable[..., Result]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keeps the platform's log, which another process would write, out of the command's output."""
    with capture_logs():
        yield


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The platform's folder."""
    return tmp_path_factory.mktemp("platform")


@pytest.fixture(scope="module")
def desk(state: Path) -> Iterator[Desk]:
    """A vault of three signers with a deposit. Shared by a module's tests."""
    with open_desk(state) as opened:
        opened.deposit(1_000_000, 2_000_000)
        yield opened


@pytest.fixture
def outside(desk: Desk) -> CommandDependencies:
    def now() -> float:
        return desk.world.clock().timestamp()

    return CommandDependencies(through(desk.world.http._transport), now, lambda _seconds: None)


@pytest.fixture
def custody(outside: CommandDependencies, tmp_path: Path) -> Custody:
    """``custody`` as a person runs it, with a session folder."""

    def run(*arguments: str, answers: str = "", env: dict[str, str] | None = None) -> Result:
        words = ["--session", str(tmp_path / "session"), *arguments]
        return CliRunner().invoke(app, words, input=answers, env=env, obj=outside)

    return run


class Drawer:
    """An unlocked keyring with one entry, which the tests' machine does not have."""

    mode = "keyring"
    kept: str | None = None

    def load(self) -> str | None:
        return self.kept

    def save(self, secret: str) -> None:
        self.kept = secret

    def clear(self) -> None:
        self.kept = None


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    """With everybody's password."""
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_text(f"{PASSWORD}\n")
    return file


@pytest.fixture
def account(password_file: Path) -> dict[str, str]:
    """The administrator's, by which ``custody`` signs in by itself."""
    own = {"CUSTODY_EMAIL": "admin@example.org", "CUSTODY_PASSWORD_FILE": str(password_file)}
    return own | {"CUSTODY_PLATFORM": PLATFORM}


@pytest.fixture
def service(custody: Custody, account: dict[str, str]) -> Custody:
    """``custody`` with the administrator's service account, without signing in."""

    def run(*arguments: str, **given: Any) -> Result:
        return custody(*arguments, env=account, **given)

    return run
