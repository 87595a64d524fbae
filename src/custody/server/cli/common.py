"""What the commands share: the state folder, refusals as words, passwords that are no arguments."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from custody.server.app import Platform, Settings, open_platform
from custody.server.domain.errors import CustodyError
from custody.server.listen import CannotListen
from custody.server.service.mail import CannotMail
from custody.server.store import CannotOpen

# The database's URL is no option: it may hold a password, and every program of a machine sees another's arguments (P49).
State = Annotated[
    Path,
    typer.Option(
        "--state",
        help="The platform's state folder. The database is a file in it, unless CUSTODY_DATABASE_URL names another.",
        envvar="CUSTODY_STATE",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One line of JSON, for programs.")]


@contextmanager
def platform_at(state: Path, **changes: Any) -> Iterator[Platform]:
    """The platform of a state folder and the environment; ``changes`` are settings that go before the environment's."""
    platform = open_platform(Settings(state=state, **changes))
    try:
        yield platform
    finally:
        platform.close()


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except CustodyError as error:
        fail(error.detail, error.hint)
    except (CannotListen, CannotMail, CannotOpen) as error:
        fail(str(error), error.hint)
    except OSError as error:
        fail(
            f"{error.filename or 'A file'} cannot be used: {error.strerror}.",
            "Name a folder that you may write.",
        )


def fail(sentence: str, hint: str) -> NoReturn:
    typer.echo(f"{sentence}\n{hint}", err=True)
    raise typer.Exit(1)


def read_secret(question: str) -> str:
    """Never an argument, as a password."""
    return getpass.getpass(question) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def read_password() -> str:
    """Never an argument: those are seen by every program on the machine (P49)."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("The same again: ") != password:
        fail("The two passwords differ.", "Run the command again.")
    return password
