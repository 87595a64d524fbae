"""What both clients of the daemon do without I/O (see ``custody.exchange``): sending a call and reading its
answer; pairing, which takes several calls: ask, show the code, wait for the person, store the token (ADR 19);
and events: the request, parsing, and resuming a broken stream.

Answers for the command line are not validated: importing pydantic and building the shapes takes longer than
the rest of a command.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from custody.exchange import Plan, Reply, Request, Wait, method
from custody.pace import Backoff, no_jitter
from custody.private_files import NO_LINK, is_open, is_ours
from signerd.asking import SILENCE_SECONDS, DaemonAddress, ask, segment
from signerd.errors import DaemonFailed, DaemonNotRunning, NotAllowed, SignerdError, UnsafeFolder
from signerd.shapes import calls
from signerd.shapes.calls import Call

if TYPE_CHECKING:
    from signerd import shapes
    from signerd.shapes import Happened


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class CallArguments:
    """The arguments of a call: ids for the path, the query (None is left out), the body as JSON.

    A body may hold a password or a PIN, so it is not in ``repr``.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


def row(call: Call[R]) -> Callable[[Callable[P, CallArguments]], method[DaemonAddress, P, R]]:
    """A method for a call of the table; the decorated function says where its arguments go."""

    def described(given: Callable[P, CallArguments]) -> method[DaemonAddress, P, R]:
        def plan(address: DaemonAddress, /, *args: P.args, **kwargs: P.kwargs) -> Plan[R]:
            return (yield from _call(address, call, given(*args, **kwargs)))

        plan.__doc__ = given.__doc__
        return method(plan, given, call)

    return described


def _call(address: DaemonAddress, call: Call[R], given: CallArguments) -> Plan[R]:
    return read(address, (yield from ask(address, request_of(address, call, given))), call)


def request_of(address: DaemonAddress, call: Call[Any], given: CallArguments) -> Request:
    """Raises InvalidRequest for an id that could change the path."""
    path = call.path.format_map({name: segment(text) for name, text in given.path.items()})
    query = {name: value for name, value in given.query.items() if value is not None}
    return address.request(call.method, path, call.seconds, query=query, body=given.body)


def read(address: DaemonAddress, reply: Reply, call: Call[R]) -> R:
    """Parse the answer. Raises DaemonFailed where it is malformed."""
    try:
        if call.answer is calls.nothing:
            return None  # type: ignore[return-value]  # the shape was None's
        if call.answer is calls.text:
            return reply.content.decode()  # type: ignore[return-value]  # the shape was str
        if address.is_plain:
            return parse(reply.content)  # type: ignore[no-any-return]  # its fields are the shape's
    except ValueError:
        raise DaemonFailed(f"the daemon's answer to {call.path} makes no sense") from None
    from pydantic import BaseModel, TypeAdapter, ValidationError

    shape = call.answer()
    try:
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            return shape.model_validate_json(reply.content)
        return TypeAdapter(shape).validate_json(reply.content)
    except ValidationError:
        raise DaemonFailed(f"the daemon's answer to {call.path} makes no sense") from None


# The person compares six digits meanwhile: a second more is not noticed.
ASK_AGAIN_SECONDS = 1.0
PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class Granted:
    """``rights``: those that the person granted. ``expires``: RFC 3339, UTC."""

    token: str = field(repr=False)
    app_id: str
    rights: tuple[str, ...]
    expires: str


class PairingCalls:
    @method
    @staticmethod
    def pair(
        address: DaemonAddress,
        name: str,
        rights: Collection[str],
        show: Callable[[str, int], None],
        store: Path | None = None,
    ) -> Plan[Granted]:
        """Ask to be paired, and wait for the person's answer. ``show`` gets the code and the
        seconds for which it is valid.

        ``store``: a file for the token, readable by this user only (0600); it is replaced.

        Raises: NotAllowed: the person refused. UnknownPairing: no answer came in time. UnsafeFolder: the
        token cannot be stored; the app is paired then, and can be revoked. And as ``ask_pairing``.
        """
        body = {"name": name, "rights": sorted(rights)}
        asked = yield from _call(address, calls.ASK_PAIRING, CallArguments(body=body))
        show(asked.code, asked.seconds)
        granted = yield from _answer(address, asked)
        if store is not None:
            store_token(store, granted.token)
        return granted


def _answer(address: DaemonAddress, asked: "shapes.Pairing") -> Plan[Granted]:
    """Poll for the answer. It ends: the daemon expires the request."""
    given = CallArguments({"pairing_id": asked.id}, body={"secret": asked.secret})
    while True:
        found = yield from _call(address, calls.COLLECT_PAIRING, given)
        if found.state == "refused":
            raise NotAllowed("the person refused to pair this app")
        if found.state == "accepted":
            return _granted(found)
        yield Wait(ASK_AGAIN_SECONDS)


def _granted(found: "shapes.Collected") -> Granted:
    return Granted(found.token or "", found.app_id or "", found.rights, found.expires or "")


def store_token(path: Path, token: str) -> None:
    """Write atomically, never readable by others, not even for a moment. Raises UnsafeFolder."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, PRIVATE_FILE)
        with os.fdopen(made, "w") as file:
            file.write(token + "\n")
        beside.replace(path)
    except OSError as error:
        raise UnsafeFolder(f"the token cannot be stored at {path}: {error.strerror}") from error


def stored_token(path: Path) -> str | None:
    """None where there is none. Raises UnsafeFolder for one that others may have read."""
    try:
        found = path.stat()
        if not is_ours(found) or is_open(found):
            raise UnsafeFolder(
                f"{path} belongs to another user, or is open to others",
                hint="Revoke the app on the page, remove the file and pair again.",
            )
        return path.read_text().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be read: {error.strerror}") from error


class Values:
    """A JSON object with its fields as attributes, as its shape would have them."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        """Raises DaemonFailed for a missing field."""
        try:
            return self._fields[name]
        except KeyError:
            raise DaemonFailed(
                f"the daemon's answer has no '{name}': another version of signerd is running",
                hint="End it and start this one.",
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def as_json(self) -> dict[str, Any]:
        return {name: _as_json(value) for name, value in self._fields.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Values):
        return value.as_json()
    return [_as_json(each) for each in value] if isinstance(value, list) else value


def parse(content: bytes | str) -> Any:
    """Raises ValueError."""
    try:
        found = json.loads(content, object_hook=Values)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, Values | list):
        raise ValueError("neither an object nor a list")  # noqa: TRY004 - as for text that is not JSON
    return found


# A starting daemon opens its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# Errors after which a stream is resumed.
BROKEN: Final = (DaemonNotRunning, DaemonFailed)


@dataclass
class Resumption:
    """The position of a reader, and how long it waits for a daemon that stopped.

    ``position``: the number of the last event that was read; None: from now on.
    """

    position: int | None
    patience: float = PATIENCE_SECONDS
    _backoff: Backoff = field(
        default_factory=lambda: Backoff(no_jitter, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    )
    _waited: float = 0.0

    def received(self, line: "Happened | None") -> None:
        self._backoff.reset()
        self._waited = 0.0
        if line is not None:
            self.position = line.number

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises ``trouble`` after ``patience`` seconds."""
        if self._waited >= self.patience:
            raise trouble or DaemonNotRunning("signerd stopped, and was not started again")
        pause = min(self._backoff.next(), self.patience - self._waited)
        self._waited += pause
        return pause


def stream(
    address: DaemonAddress,
    subject: str | None,
    *,
    after: int | None = None,
    resumed: Resumption | None = None,
) -> Request:
    query = {name: value for name, value in {"after": after, "subject": subject}.items() if value is not None}
    position = None if resumed is None else resumed.position
    headers = {} if position is None else {"Last-Event-ID": str(position)}
    return address.request("GET", calls.EVENTS.path, SILENCE_SECONDS, query=query, headers=headers)


def is_news(line: str) -> bool:
    """Whether ``event`` parses this line."""
    return line.startswith((_DATA, ":"))


def event(line: str, *, is_plain: bool) -> "Happened | None":
    """The event of a line; None for a heartbeat. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    content = line.removeprefix(_DATA)
    try:
        if is_plain:
            return parse(content)  # type: ignore[no-any-return]  # its fields are the shape's
        from signerd.shapes import Happened

        # pydantic's errors are ValueErrors.
        return Happened.model_validate_json(content)
    except ValueError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None
