"""The start of a `custody` command: neither its help nor an everyday command loads the server."""

import socket
import sys

import pytest

from custody.schemas import common as schemas
from custody.schemas.onboarding import OnboardingStatus
from custody.server.cli import admin, auditing, common
from custody.server.rules.audit import PLATFORM_CHAIN
from custody.server.rules.roles import SIGNER
from custody.server.secrets import Purpose
from custody.server.store import Store, sqlite_url
from tests.support.processes import ended

HEAVY = ("fastapi", "httpx", "pydantic", "sqlalchemy", "structlog", "custody.server.app")
OF_A_SERVER = {
    *("alembic", "argon2", "asyncpg", "embit", "fastapi", "httpx", "joserfc", "pbk", "prometheus_client"),
    *("starlette", "uvicorn"),
}
PROGRAM = """
import sys
from custody.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", ["--version", "--help", "serve --help", "admin --help", "admin jobs retry --help", "audit"]
)
def test_words_about_a_command_come_without_the_server(words):
    loaded = loaded_by(*words.split())
    assert "custody.cli.program" in loaded
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize(
    "words", ["vault list", "proposal create Ours 1BTC Acme", "audit tail", "login --help"]
)
def test_an_everyday_command_starts_without_the_server(words, tmp_path):
    """As far as a connection that is refused: every module that a command needs is loaded by then."""
    password = tmp_path / "password"
    password.touch(mode=0o600)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    account = {"CUSTODY_EMAIL": "a@b.example", "CUSTODY_PASSWORD_FILE": str(password)}
    loaded = loaded_by(*words.split(), env=account | {"CUSTODY_PLATFORM": nobody})
    assert "custody.cli.desk" in loaded
    heavy = ("custody.server", "sqlalchemy", "fastapi", "signerd", "httpx", "asyncio")
    assert [name for name in loaded if name.startswith(heavy)] == []


def loaded_by(*words, env=None):
    return ended([sys.executable, "-c", PROGRAM, *words], env=env or {}).stderr.splitlines()[-1].split()


def test_a_command_that_needs_no_database_loads_none(tmp_path):
    """The embedded chain's ask the server that has it."""
    asked = loaded_by("chain", "mine", "1", "--state", str(tmp_path))
    assert "custody.server.mining" in asked
    assert [name for name in HEAVY if name in asked] == []
    checked = loaded_by("audit", "verify-export", str(tmp_path / "no.csv"))
    assert "custody.server.rules.audit" in checked
    assert [name for name in ("sqlalchemy", "httpx", "structlog") if name in checked] == []


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("status", 66),
        ("admin jobs", 66),
        ("audit verify", 57),
        ("audit public-key", 57),
        ("admin requests", 104),
    ],
)
def test_a_command_that_reads_the_database_loads_few_of_our_modules_and_no_server(words, most, tmp_path):
    """Each module is a few milliseconds of every start. What is up to date is not migrated."""
    Store.open(sqlite_url(tmp_path / "custody.db")).close()
    loaded = loaded_by(*words.split(), "--state", str(tmp_path))
    assert "custody.server.stored" in loaded
    assert OF_A_SERVER.intersection(name.partition(".")[0] for name in loaded) == set()
    assert len([name for name in loaded if name.startswith(("custody", "multisig"))]) <= most


def default_of(command, name):
    return next(parameter.default for parameter in command.params if parameter.name == name)


def test_what_the_command_line_repeats_is_what_the_server_has():
    assert schemas.MAX_INT64 == common.MAX_INT64
    assert [*map(str, Purpose)] == [*admin.PURPOSES]
    assert [*map(str, OnboardingStatus)] == [*admin.STATUSES]
    assert default_of(auditing.export_command, "chain") == PLATFORM_CHAIN
    assert SIGNER.name == default_of(admin.add_member_command, "role")
