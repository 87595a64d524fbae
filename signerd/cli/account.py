"""login, logout: through the daemon if it runs, else directly on the state folder, which is locked
meanwhile.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from custody.common.terminal import CODE, EMAIL, PASSWORD, Prompter, aside
from multisig.network import Network
from signerd.cli.desk import Desk, answering
from signerd.errors import AnswerMissing, SignInFailed

if TYPE_CHECKING:
    import asyncio

    from signerd.account.config import Config
    from signerd.account.session import Account
    from signerd.shapes import SignedIn

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


STORES = ("keyring", "file")


# Two typing errors are allowed.
TRIES = 3

_SETTINGS = (
    click.option("--platform", metavar="URL", help="The platform."),
    click.option("--network", type=click.Choice(tuple(map(str, Network))), help="Mainnet where not given."),
    click.option(
        "--device", "endpoints", multiple=True, metavar="ENDPOINT", help="A device that is no USB device."
    ),
    click.option("--label", help="The name of your device."),
    click.option(
        "--secrets",
        type=click.Choice(STORES),
        help="Where the session's secret is kept; the keyring where not given.",
    ),
)


def settings(command: F) -> F:
    """The options that the first sign-in writes to the configuration, and that a later one must agree
    with.
    """
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@settings
@answering
def login(desk: Desk, **given: Any) -> None:
    """Sign in to the platform.

    Asks for the e-mail address, the password and, where the platform wants one, the one-time code; first for
    the passphrase of the secrets file where there is one. They are typed, or read from standard input, one
    per line. The first sign-in needs --platform, and its success writes the options to the configuration. A
    later option that differs is refused before anything is asked.
    """
    config, write = configured(desk, given)
    done = signed_in(desk, config)
    write()
    desk.give(done, signed_in_words(done))


def signed_in_words(done: "SignedIn") -> str:
    return f"Signed in as {done.email}. The session is kept in: {done.secrets}."


def configured(desk: Desk, given: dict[str, Any]) -> "tuple[Config | None, Callable[[], None]]":
    """The configuration to sign in with (None: the existing one), and a function that writes it after the
    sign-in. ``given``: the options of ``settings``, the fields of ``foreground.Setup``.

    Raises:
        As ``foreground.config_for``: an existing configuration differs.
    """
    if not any(given.values()):
        return None, lambda: None
    from signerd.cli.foreground import SetupOptions, config_for

    return config_for(desk.state, SetupOptions(**given))


def signed_in(desk: Desk, config: "Config | None") -> "SignedIn":
    """Raises SignInFailed, AnswerMissing; leaves of PlatformError, SecretsError, JournalError."""
    if not desk.running():
        return _directly(desk, config)
    done = _with_password(desk.answers, desk.daemon.sign_in)
    return _with_code(desk.answers, desk.daemon.confirm_sign_in) if done.code_needed else done


def _with_password(answers: Prompter, sign_in: Callable[[str, str], T]) -> T:
    """Platforms do not say which of the two was wrong: both are asked for again."""
    return _retrying(
        lambda: sign_in(answers.line(EMAIL).strip(), answers.secret(PASSWORD)), "Once more, with both:"
    )


def _with_code(answers: Prompter, confirm: Callable[[str], T]) -> T:
    """After a wrong code only the code is asked for again."""
    return _retrying(lambda: confirm(answers.line(CODE).strip()), "Once more, with the code alone:")


def _retrying(attempt: Callable[[], T], again: str) -> T:
    """Raises SignInFailed, or AnswerMissing where the first answer is missing."""
    failed: SignInFailed | None = None
    for _slip in range(TRIES):
        if failed is not None:
            aside(f"  {str(failed).rstrip('.')}. {again}")
        try:
            return attempt()
        except SignInFailed as error:
            failed = error
        except AnswerMissing:
            if failed is None:
                raise
            break
    assert failed is not None, "the loop ends with an error"
    raise failed


@contextlib.contextmanager
def _opened(desk: Desk, config: "Config | None" = None) -> "Iterator[tuple[Config, Account, asyncio.Runner]]":
    """The account, without a daemon; its folder is held. No event loop runs while the person is asked, so
    Ctrl-C works at once.
    """
    import asyncio

    from signerd.account.config import find_config, load_config
    from signerd.account.session import Account
    from signerd.cli.foreground import opened_store
    from signerd.journal.storage import held

    with held(desk.state), asyncio.Runner() as runner:
        config = config or load_config(find_config(desk.state))
        account = Account(config, opened_store(config, desk.state, desk.answers))
        try:
            yield config, account, runner
        finally:
            runner.run(account.close())


def _directly(desk: Desk, config: "Config | None") -> "SignedIn":
    from signerd.app import open_journal
    from signerd.core.audit import Note
    from signerd.shapes import SignedIn

    with _opened(desk, config) as (used, account, runner):
        if not _with_password(desk.answers, lambda *given: runner.run(account.login(*given))):
            _with_code(desk.answers, lambda code: runner.run(account.confirm(code)))
        done = SignedIn(email=account.email or "", code_needed=False, secrets=account.mode)
        # Opened only after success: a backup can still be restored where a sign-in failed.
        with open_journal(used, desk.state) as journal:
            journal.note(Note("signed-in", done.email))
    return done


@answering
def logout(desk: Desk) -> None:
    """Sign out, here and at the platform."""
    if desk.running():
        desk.daemon.sign_out()
    else:
        _sign_out_directly(desk)
    desk.give({"signed_in": False}, "Signed out.")


def _sign_out_directly(desk: Desk) -> None:
    from signerd.app import open_journal
    from signerd.core.audit import Note

    with _opened(desk) as (config, account, runner), open_journal(config, desk.state) as journal:
        runner.run(account.restore())
        runner.run(account.logout())
        journal.note(Note("signed-out", "account"))
