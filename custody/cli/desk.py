"""What an everyday command starts from: who asks, how questions are answered, and the connection to the
platform; and how errors of the platform, the connection or a request's validation become a command's last
words.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from custody.cli.common import Stop, fail
from custody.cli.stored_session import (
    ClientSettings,
    alone,
    as_secret,
    forget,
    from_secret,
    read_settings,
    store_of,
    write_settings,
)
from custody.common.session_store import credential
from custody.common.terminal import CODE, PASSWORD, Exit, Prompter, aside

if TYPE_CHECKING:
    from pydantic import ValidationError

    from custody.client import ApiError, Client, ClientError, Session
    from custody.schemas.auth import LoginResponse


DEVICE_NAME: Final = "custody"
CREDENTIAL: Final = "custody-passphrase"
QUESTION: Final = "Passphrase of the session's file"
CHOICE: Final = "Choose a passphrase for the session's file; each command asks for it"
# As long as a password may be, and a line's end.
MOST_PASSWORD_BYTES: Final = 1_024
# A mistyped code is asked for again; the platform counts, too.
CODE_TRIES: Final = 3


@dataclass(frozen=True)
class CommandDependencies:
    """The network and the clock; a test has its own. ``transport``: as a client takes it."""

    transport: Any = None
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass
class ClientDesk:
    """``given``: the folder of the command line, else the desktop's own."""

    given: Path | None
    answers: Prompter
    outside: CommandDependencies = field(default_factory=CommandDependencies)
    _passphrase: str | None = None

    @property
    def folder(self) -> Path:
        if self.given is not None:
            return self.given
        from platformdirs import user_state_path

        return user_state_path("custody") / "session"

    # --- signing in -----------------------------------------------------------------------------------------

    def require_store(self, store: str) -> None:
        """Before the platform is asked: a code is used up by then. Raises Stop where there is no keyring."""
        if store == "keyring":
            store_of(self.folder, store, self._new_passphrase).load()
        else:
            self._new_passphrase()

    def sign_in(self, platform: str, ca_file: Path | None, store: str, email: str) -> str:
        """Asks for the password and the code; how the session is kept. Nothing is written before the platform
        has taken them.
        """
        from custody.client import ClientError

        settings = ClientSettings(
            platform, email, store, None if ca_file is None else str(ca_file.absolute())
        )
        with refusals(), self._client(settings) as client:
            former = read_settings(self.folder)
            self._enter(client, email, self.answers.secret(PASSWORD))
            assert client.core.session is not None
            try:
                listed = next((one.session_id for one in client.sessions() if one.current), "")
                kept = self._keep(replace(settings, session_id=listed), client.core.session)
            except (Stop, ClientError):
                # No session would ever use it.
                with suppress(ClientError):
                    client.logout()
                raise
            if former is not None:
                self._end_former(client, former, settings)
            return kept

    def _keep(self, settings: ClientSettings, session: "Session") -> str:
        """In the place of what was kept before, whose passphrase may be forgotten."""
        store = store_of(self.folder, settings.store, self._new_passphrase)
        with alone(self.folder):
            store.clear()
            store.save(as_secret(settings.platform, session))
            write_settings(self.folder, settings)
        return store.mode

    def _end_former(self, client: "Client", former: ClientSettings, now: ClientSettings) -> None:
        """The session before this one, at the platform by its id, and in a store that is not used any more.
        What cannot be ended is said.
        """
        from custody.client import ClientError
        from custody.schemas.auth import RevokeSessionsRequest

        if former.store != now.store:
            try:
                store_of(self.folder, former.store, self._new_passphrase).clear()
            except Stop as error:
                aside(f"The session before this one is still kept in its {former.store}: {error.message}.")
        if (former.platform, former.email.casefold()) == (now.platform, now.email.casefold()):
            # It may have ended by itself, or the platform did not list it.
            if former.session_id:
                with suppress(ClientError):
                    client.revoke_sessions(RevokeSessionsRequest(session_id=former.session_id))
        else:
            aside(
                f"The session of {former.email} at {former.platform} is no longer kept here, but was not "
                "ended there: it ends by itself after thirty days. Use custody logout first, or a --session "
                "DIR for each."
            )

    def _enter(self, client: "Client", email: str, password: str) -> None:
        from pydantic import ValidationError

        from custody.client import ApiError
        from custody.schemas.auth import OtpValidateRequest

        answer = _login(client, email, password)
        for left in range(CODE_TRIES - 1, -1, -1):
            if not answer.requires_2fa:
                return
            try:
                code = self.answers.line(CODE).strip()
                answer = client.otp_validate(OtpValidateRequest(token_2fa=answer.token_2fa, otp=code))
            except ApiError as error:
                if error.problem.code != "OTP_INVALID" or not left:
                    raise
                aside(error.problem.detail)
            except ValidationError:
                if not left:
                    raise
                aside("A code is six digits, or one of the recovery codes.")

    def sign_out(self) -> bool:
        """Here, and at the platform where it can be reached. False where no one was signed in."""
        from custody.client import ClientError

        settings = read_settings(self.folder)
        if settings is None:
            return False
        store = store_of(self.folder, settings.store, self._known_passphrase)
        with alone(self.folder), refusals(), self._client(settings) as client:
            client.core.session = from_secret(store.load(), settings.platform)
            with suppress(ClientError):
                client.logout()
            store.clear()
            forget(self.folder)
        return True

    def _new_passphrase(self) -> str:
        return self._known_passphrase(CHOICE)

    def _known_passphrase(self, question: str = QUESTION) -> str:
        """From systemd, where it provides one (``LoadCredential=custody-passphrase``); else asked for
        once.
        """
        if self._passphrase is None:
            given, fresh = credential(CREDENTIAL), question == CHOICE
            self._passphrase = given or self.answers.secret(question, fresh=fresh)
        return self._passphrase

    # --- calling --------------------------------------------------------------------------------------------

    @contextmanager
    def client(self) -> "Iterator[Client]":
        """Signed in: as a service where the environment names its secret's or password's file, else with the
        stored session. Errors end the command with a sentence and a status (`refusals`).
        """
        with refusals(), self._signed_in() as client:
            yield client
            # Each entry that the platform could not show, beside the list that stands without it.
            for entry in client.core.unreadable:
                names = ", ".join(f"{name} {value}" for name, value in entry.items() if name != "unreadable")
                aside(f"Not shown: {names}. {entry['unreadable']}")

    def _signed_in(self) -> "AbstractContextManager[Client]":
        if is_program():
            return self._as_program()
        return self._as_service() if is_service() else self._as_person()

    @contextmanager
    def _as_person(self) -> "Iterator[Client]":
        """With the stored session, which is renewed if it is due."""
        from custody.client.flow import renew

        settings = read_settings(self.folder)
        if settings is None:
            fail("you are not signed in here", "Run custody login --platform URL.", Exit.SIGNED_OUT)
        store = store_of(self.folder, settings.store, self._known_passphrase)

        def changed(session: "Session | None") -> None:
            store.clear() if session is None else store.save(as_secret(settings.platform, session))

        with self._client(settings) as client:
            client.core.on_session = changed
            with alone(self.folder):
                kept = from_secret(store.load(), settings.platform)
                if kept is None:
                    fail("you are not signed in here", "Run custody login.", Exit.SIGNED_OUT)
                client.core.session = kept
                if kept.is_due(self.outside.now()):
                    client.run(renew(client.core, stale=kept))
            yield client

    @contextmanager
    def _as_program(self) -> "Iterator[Client]":
        """With a service account's secret: there is no session that would have to be ended."""
        from custody.client import Session

        with self._client(_of_environment("no platform is named", "CUSTODY_SECRET_FILE")) as client:
            client.core.session = Session.of_service_account(_secret_in("CUSTODY_SECRET_FILE", "secret"))
            yield client

    @contextmanager
    def _as_service(self) -> "Iterator[Client]":
        """A session for this one command, with a password."""
        from custody.client import ClientError

        words, secret = "the platform or the account of the service is not named", "CUSTODY_PASSWORD_FILE"
        settings = _of_environment(words, secret, "CUSTODY_EMAIL")
        with self._client(settings) as client:
            if _login(client, settings.email, _secret_in(secret, "password")).requires_2fa:
                fail(
                    f"{settings.email} is asked for a code, which no program can give",
                    "It has a second factor, or somebody guesses at its password. Give the program a "
                    "service account, which asks for no code: custody service-account make.",
                    Exit.SIGNED_OUT,
                )
            try:
                yield client
            finally:
                with suppress(ClientError):
                    client.logout()

    def _client(self, settings: ClientSettings) -> "Client":
        from custody.client import Client

        try:
            return Client(
                settings.platform,
                transport=self.outside.transport,
                ca_file=None if settings.ca_file is None else Path(settings.ca_file),
                now=self.outside.now,
                sleep=self.outside.sleep,
            )
        except OSError as error:
            raise Stop(f"{settings.ca_file} cannot be used: {error.strerror}", "", Exit.STATE) from None


def is_service() -> bool:
    """Whether the environment names the account: a program runs without a person who signs in."""
    return is_program() or bool(os.environ.get("CUSTODY_PASSWORD_FILE"))


def is_program() -> bool:
    """Whether it uses a service account's secret."""
    return bool(os.environ.get("CUSTODY_SECRET_FILE"))


def _login(client: "Client", email: str, password: str) -> "LoginResponse":
    from pydantic import SecretStr

    from custody.schemas.auth import LoginRequest

    return client.login(LoginRequest(email=email, password=SecretStr(password), device=DEVICE_NAME))


def _of_environment(words: str, secret: str, *email: str) -> ClientSettings:
    """``words``: where a variable beside the ``secret`` is not set. Raises Stop."""
    names = ("CUSTODY_PLATFORM", *email)
    given = [os.environ.get(name, "") for name in names]
    if not all(given):
        fail(words, f"Set {' and '.join(names)} as well as {secret}.", Exit.USAGE)
    return ClientSettings(given[0], "".join(given[1:]), ca_file=os.environ.get("CUSTODY_CA_FILE"))


def _secret_in(variable: str, kind: str) -> str:
    """``variable``: names the file. ``kind``: password or secret. Raises Stop where other users could read
    the file, or it has none.
    """
    file = Path(os.environ[variable])
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            text = opened.read(MOST_PASSWORD_BYTES).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise Stop(f"{file} holds no {kind}", "Write it there, mode 0600.", Exit.STATE) from None
    if mode & 0o077:
        fail(f"{file} is open to other users (mode {mode:o})", f"chmod 600 {file}", Exit.STATE)
    return text


pass_desk = click.make_pass_decorator(ClientDesk)


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the errors of the client and of validation into Stop."""
    from pydantic import ValidationError

    from custody.client import ApiError, ClientError

    try:
        yield
    except ApiError as error:
        raise _of_platform(error) from None
    except ClientError as error:
        raise _of_client(error) from None
    except ValidationError as error:
        raise of_shape(error) from None


def _of_platform(error: "ApiError") -> Stop:
    problem = error.problem
    if problem.status == HTTPStatus.UNAUTHORIZED:
        return Stop(problem.detail, "", Exit.SIGNED_OUT, code=problem.code)
    trace = f"The operator finds it by its trace, {problem.trace_id}." if problem.trace_id else ""
    hint = trace if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
    if error.retry_after_seconds:
        hint = f"Try again in {error.retry_after_seconds:.0f} seconds."
    hint = hint or f"custody explain {problem.code} says what to do, and who can."
    return Stop(problem.detail, hint, Exit.PLATFORM, code=problem.code)


def _of_client(error: "ClientError") -> Stop:
    from custody.client import SignedOut, Unreachable

    if isinstance(error, SignedOut):
        return Stop(str(error), "Run custody login.", Exit.SIGNED_OUT, code=error.code)
    if isinstance(error, Unreachable):
        sentence = f"the platform gave no answer ({error})"
        return Stop(sentence, "Check the network and the address.", Exit.PLATFORM, code=error.code)
    return Stop(str(error), error.hint, Exit.PLATFORM, code=error.code)


def of_shape(error: "ValidationError") -> Stop:
    from custody.schemas.errors import fault_sentence

    first = error.errors(include_url=False, include_input=False)[0]
    sentence = fault_sentence(first).replace(" in quotes", "")
    return Stop(sentence, "", Exit.USAGE, code="invalid-request")
