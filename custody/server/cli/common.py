"""Shared by the operators' commands: the state folder, and errors as sentences."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from custody.cli.common import Stop, fail
from custody.cli.desk import of_shape
from custody.common.terminal import Exit
from multisig.network import Network

if TYPE_CHECKING:
    from custody.server.app import Platform
    from custody.server.errors import CustodyError
    from custody.server.services import Services
    from custody.server.settings import Settings
    from custody.server.stored import Stored

# The database's URL is not an option: it may hold a password, and arguments are visible to every program on
# the machine (P49).
state_option = click.option(
    "--state",
    required=True,
    type=click.Path(path_type=Path),
    envvar="CUSTODY_STATE",
    help="The platform's state folder. The database is a file in it, unless CUSTODY_DATABASE_URL names "
    "another.",
)
# The chains that a workspace can be on.
CHAINS = tuple(map(str, Network))
# The largest id of the API, as in `custody.schemas.common`; a test compares them.
MAX_INT64 = 2**63 - 1


@contextmanager
def platform_at(state: Path, **changes: Any) -> "Iterator[Platform]":
    """The platform of a state folder and the environment, made where there is none; ``changes`` are settings
    that go before the environment's. Raises Stop (`refusals`), also for what is done with it.
    """
    from custody.server.app import open_platform

    with refusals(), closing(open_platform(_settings_of(state, new=True, **changes))) as platform:
        yield platform


@contextmanager
def services_at(state: Path, *, new: bool = False) -> "Iterator[Services]":
    """The use cases, for one command: no chain, worker or web. Only a ``new`` platform is made where there is
    none: elsewhere a mistyped folder would be answered with an empty platform, and its audit log found whole.
    """
    from custody.server.opening import PlatformDependencies, services_of
    from custody.server.settings import Settings

    with stored_at(state, new=new) as stored:
        yield services_of(Settings(state=state), PlatformDependencies(), stored, {})


@contextmanager
def stored_at(state: Path, *, new: bool = False) -> "Iterator[Stored]":
    """As ``services_at``, without the use cases."""
    from custody.server.stored import open_stored

    warn_aside()
    with refusals():
        stored = open_stored(_settings_of(state, new=new))
        with closing(stored.store):
            yield stored


def warn_aside() -> None:
    """What is printed is the answer, and may be for a program: warnings go beside it."""
    import structlog

    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def _settings_of(state: Path, *, new: bool = False, **changes: Any) -> "Settings":
    from custody.server.settings import Settings

    settings = Settings(state=state, **changes)
    if not new and settings.database_url is None and not settings.sqlite_file.exists():
        fail(
            f"There is no platform in {state}.",
            "Check --state or CUSTODY_STATE, and CUSTODY_DATABASE_URL where its database is elsewhere; "
            "custody serve and custody admin bootstrap make a new one.",
            Exit.STATE,
        )
    return settings


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the platform's errors, and those of validation and of files, into Stop."""
    from pydantic import ValidationError

    from custody.server.errors import CustodyError, Misconfigured

    try:
        yield
    except ValidationError as error:
        raise of_shape(error) from None
    except CustodyError as error:
        raise Stop(error.detail, _hint(error), _status(error), code=error.code) from None
    except Misconfigured as error:
        fail(str(error), error.hint, Exit.STATE)
    except OSError as error:
        fail(
            f"{error.filename or 'A file'} cannot be used: {error.strerror}.",
            "Check its name."
            if isinstance(error, FileNotFoundError)
            else "Name a folder that you may write.",
            Exit.STATE,
        )


def _hint(error: "CustodyError") -> str:
    """The API's advice, except where it does not fit a command line, which has no fields and no workspace."""
    from custody.server.errors import Invalid, NotFound, StateConflict

    hints: dict[type[CustodyError], str] = {
        Invalid: "Correct it and run the command again.",
        NotFound: "Check the id or the address, and that --state is the platform that you mean.",
        StateConflict: "Nothing was changed.",
    }
    is_general = error.hint == type(error).hint
    return hints.get(type(error), error.hint) if is_general else error.hint


def _status(error: "CustodyError") -> Exit:
    from custody.server import errors as e

    if isinstance(error, e.Invalid):
        return Exit.USAGE
    is_away = isinstance(error, e.ChainUnavailable | e.PolicyUnavailable | e.DatabaseUnavailable)
    return Exit.PLATFORM if is_away else Exit.NOT_DECIDED
