"""What both clients of the daemon do without I/O (see ``custody.common.exchange``): the calls of
``signerd.api``; pairing, which takes several: ask, show the code, wait for the person, store the token (ADR
19); and events: the request, parsing, and waiting for a daemon that stopped.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from custody.common.exchange import Plan, Wait, method
from custody.common.pace import Backoff, no_jitter
from custody.common.private_files import is_open, is_ours, write_private
from signerd import shapes
from signerd.api.account import AccountApi
from signerd.api.apps import AppsApi
from signerd.api.devices import DevicesApi
from signerd.api.proposals import ProposalsApi
from signerd.api.vaults import VaultsApi
from signerd.asking import DaemonAddress, parse
from signerd.errors import (
    DaemonFailed,
    DaemonNotRunning,
    NotAllowed,
    SignerdError,
    UnsafeFolder,
    system_errors,
)

# The person compares six digits meanwhile: a second more is not noticed.
ASK_AGAIN_SECONDS = 1.0


@dataclass(frozen=True)
class Granted:
    """``rights``: those that the person granted. ``expires``: RFC 3339, UTC."""

    token: str = field(repr=False)
    app_id: str
    rights: tuple[str, ...]
    expires: str


class LoopbackApi(AccountApi, DevicesApi, VaultsApi, ProposalsApi, AppsApi):
    """The calls. Each raises DaemonNotRunning, DaemonFailed, and the leaves of SignerdError that the daemon
    answers with.
    """

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Self:
        """Over TCP. Without a token only ``pair`` is answered. Raises InvalidRequest for a URL of another
        machine.
        """
        return cls(DaemonAddress.of_address(url, token))  # type: ignore[call-arg]  # as both clients are made

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
        # The daemon says which rights there are.
        pairing = yield from AppsApi.ask_pairing.plan(address, name, frozenset(rights))  # type: ignore[arg-type]
        show(pairing.code, pairing.seconds)
        granted = yield from _answer(address, pairing)
        if store is not None:
            store_token(store, granted.token)
        return granted


def _answer(address: DaemonAddress, pairing: "shapes.Pairing") -> Plan[Granted]:
    """Poll for the answer. It ends: the daemon expires the request."""
    while True:
        collected = yield from AppsApi.collect_pairing.plan(address, pairing.id, pairing.secret)
        if collected.state == "refused":
            raise NotAllowed("the person refused to pair this app")
        if collected.state == "accepted":
            return Granted(
                collected.token or "", collected.app_id or "", collected.rights, collected.expires or ""
            )
        yield Wait(ASK_AGAIN_SECONDS)


def store_token(path: Path, token: str) -> None:
    """Write atomically, never readable by others, not even for a moment. Raises UnsafeFolder."""
    with system_errors(UnsafeFolder, f"the token cannot be stored at {path}"):
        write_private(path, f"{token}\n".encode())


def stored_token(path: Path) -> str | None:
    """None where there is none. Raises UnsafeFolder for one that others may have read."""
    try:
        status = path.stat()
        if not is_ours(status) or is_open(status):
            raise UnsafeFolder(
                f"{path} belongs to another user, or is open to others",
                hint="Revoke the app on the page, remove the file and pair again.",
            )
        return path.read_text().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be read: {error.strerror}") from error


# A starting daemon opens its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# Errors after which a stream is resumed.
BROKEN: Final = (DaemonNotRunning, DaemonFailed)


@dataclass
class Patience:
    """How long a reader waits for a daemon that stopped."""

    _backoff: Backoff = field(
        default_factory=lambda: Backoff(no_jitter, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    )
    _waited: float = 0.0

    def answered(self) -> None:
        self._backoff.reset()
        self._waited = 0.0

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises ``trouble`` after ``PATIENCE_SECONDS`` of them."""
        if self._waited >= PATIENCE_SECONDS:
            raise trouble or DaemonNotRunning("signerd stopped, and was not started again")
        pause = min(self._backoff.next(), PATIENCE_SECONDS - self._waited)
        self._waited += pause
        return pause


def is_news(line: str) -> bool:
    """Whether ``event`` parses this line."""
    return line.startswith((_DATA, ":"))


def event(line: str, *, is_plain: bool) -> "shapes.Happened | None":
    """The event of a line; None for a heartbeat. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    content = line.removeprefix(_DATA)
    try:
        if is_plain:
            return parse(content)  # type: ignore[no-any-return]  # its fields are the shape's
        # pydantic's errors are ValueErrors.
        return shapes.Happened.model_validate_json(content)
    except ValueError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None
