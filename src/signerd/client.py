"""The daemon, for a program of the same person: its interface as typed calls over the private socket.

::

    with DaemonClient(state_folder) as daemon:
        for line in daemon.proposals():
            print(line.psbt_id, line.state)
"""

import contextlib
import re
import socket
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from signerd.errors import DaemonFailed, DaemonNotRunning, InvalidRequest, SignerdError
from signerd.loopback import shapes
from signerd.loopback.errors import error_from
from signerd.loopback.place import HOST, trusted_socket

T = TypeVar("T")

# An answer from memory takes milliseconds; the platform may be asked on the way.
QUICK_SECONDS = 40.0
# Nine keys from a device that has to be woken first.
DEVICE_SECONDS = 120.0
# firmware_bridge gives a person ten minutes at the device.
PERSON_SECONDS = 15 * 60.0
CONNECT_SECONDS = 5.0
# Twice the daemon's heartbeat, and some.
SILENCE_SECONDS = 35.0
_BASE = f"http://{HOST}/v1"


class DaemonClient:
    """One connection pool to one daemon. Use as a context manager; one thread at a time.

    Every call raises DaemonNotRunning, UnsafeFolder, DaemonFailed, and the leaves of SignerdError that the daemon
    answers with.
    """

    def __init__(self, state: Path) -> None:
        """Raises DaemonNotRunning, UnsafeFolder: nothing is sent to a socket that somebody else could have made."""
        self._socket = trusted_socket(state)
        _require_answering(self._socket)
        self._http = _connection(self._socket, QUICK_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- looking -----------------------------------------------------------------------------------------------------

    def status(self) -> shapes.Status:
        return self._ask("GET", "/status", shapes.Status)

    def devices(self) -> tuple[shapes.DeviceView, ...]:
        return self._ask("GET", "/devices", tuple[shapes.DeviceView, ...])

    def vaults(self) -> tuple[shapes.VaultView, ...]:
        return self._ask("GET", "/vaults", tuple[shapes.VaultView, ...])

    def proposals(self, *, ended: bool = False) -> tuple[shapes.ProposalLine, ...]:
        params = {"ended": "true"} if ended else {}
        return self._ask("GET", "/proposals", tuple[shapes.ProposalLine, ...], params=params)

    def proposal(self, psbt_id: str) -> shapes.ProposalView:
        return self._ask("GET", f"/proposals/{_segment(psbt_id)}", shapes.ProposalView)

    def verify_audit(self) -> shapes.AuditReport:
        return self._ask("GET", "/audit", shapes.AuditReport)

    # --- deciding ----------------------------------------------------------------------------------------------------

    def approve(self, psbt_id: str, digest: str, acknowledged: Collection[str] = ()) -> shapes.ProposalLine:
        """Say yes to what ``proposal`` showed under this digest, naming the warnings that were read."""
        body = {"digest": digest, "acknowledged": sorted(acknowledged)}
        return self._ask("POST", f"/proposals/{_segment(psbt_id)}/approve", shapes.ProposalLine, json=body)

    def reject(self, psbt_id: str, reason: str = "") -> shapes.ProposalLine:
        path = f"/proposals/{_segment(psbt_id)}/reject"
        return self._ask("POST", path, shapes.ProposalLine, json={"reason": reason})

    # --- the account, keys and vaults --------------------------------------------------------------------------------

    def sign_in(self, email: str, password: str) -> shapes.SignedIn:
        return self._ask("POST", "/session", shapes.SignedIn, json={"email": email, "password": password})

    def confirm_sign_in(self, code: str) -> shapes.SignedIn:
        return self._ask("POST", "/session/code", shapes.SignedIn, json={"code": code})

    def sign_out(self) -> None:
        self._send("DELETE", "/session")

    def preview_registration(self, device_id: str | None = None) -> shapes.RegistrationPreview:
        params = {} if device_id is None else {"device": device_id}
        path = "/registration/preview"
        return self._ask("POST", path, shapes.RegistrationPreview, params=params, timeout=DEVICE_SECONDS)

    def register(self, device_id: str, digest: str, *, replace: bool = False) -> shapes.Registered:
        """Returns when the person has confirmed on the device; ``follow`` "registration" meanwhile."""
        body = {"device_id": device_id, "digest": digest, "replace": replace}
        return self._ask("POST", "/registration", shapes.Registered, json=body, timeout=PERSON_SECONDS)

    def preview_pin(self, vault_id: str, brought: shapes.BroughtQuorum | None = None) -> shapes.PinPreview:
        """What to compare before pinning; a vault brought from elsewhere must be the one in the platform's record."""
        body = shapes.PinPreviewRequest(brought=brought).model_dump()
        return self._ask("POST", f"/vaults/{_segment(vault_id)}/pin/preview", shapes.PinPreview, json=body)

    def pin(
        self,
        vault_id: str,
        code: str,
        brought: shapes.BroughtQuorum | None = None,
        *,
        without_device_address: bool = False,
    ) -> shapes.VaultView:
        """Returns when the device knows the vault and has shown its first address; follow the vault's id meanwhile."""
        body = {
            "code": code,
            "brought": None if brought is None else brought.model_dump(),
            "without_device_address": without_device_address,
        }
        path = f"/vaults/{_segment(vault_id)}/pin"
        return self._ask("POST", path, shapes.VaultView, json=body, timeout=PERSON_SECONDS)

    def unpin(self, vault_id: str, code: str) -> shapes.VaultView:
        path = f"/vaults/{_segment(vault_id)}/unpin"
        return self._ask("POST", path, shapes.VaultView, json={"code": code})

    # --- what happens ------------------------------------------------------------------------------------------------

    def follow(self, *, after: int | None = None, subject: str | None = None) -> "Following":
        """What happens after the position ``after`` (None: from now on). Use the answer as a context manager."""
        given = {"after": after, "subject": subject}
        params = {name: value for name, value in given.items() if value is not None}
        return Following(self._socket, params)

    def _ask(self, method: str, path: str, shape: type[T], **given: Any) -> T:
        answer = self._send(method, path, **given)
        try:
            return TypeAdapter(shape).validate_json(answer.content)
        except ValidationError:
            raise DaemonFailed(f"the daemon's answer to {path} makes no sense") from None

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        with _translated(self._socket):
            answer = self._http.request(method, _BASE + path, **given)
        if answer.is_error:
            raise _refusal(answer)
        return answer


class Following:
    """An open stream on a connection of its own: iterate it in any one thread, ``stop`` it from any other.

    Yields each line as it happens, and None now and then while nothing does. Ends when the daemon ends it. Raises as
    DaemonClient does.
    """

    def __init__(self, path: Path, params: Mapping[str, str | int]) -> None:
        self._path = path
        self._params = params
        self._stopped = False
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        http = self._exit.enter_context(_connection(self._path, SILENCE_SECONDS))
        with self._exit, _translated(self._path):
            self._answer = self._exit.enter_context(
                http.stream("GET", f"{_BASE}/events", params=self._params)
            )
            if self._answer.is_error:
                self._answer.read()
                raise _refusal(self._answer)
            self._exit = self._exit.pop_all()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._exit.close()

    def __iter__(self) -> Iterator[shapes.Happened | None]:
        try:
            with _translated(self._path):
                yield from _events(self._answer.iter_lines())
        except DaemonFailed:
            if not self._stopped:
                raise

    def stop(self) -> None:
        """End the iteration in the other thread, at once."""
        self._stopped = True
        connected: socket.socket = self._answer.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _events(lines: Iterator[str]) -> Iterator[shapes.Happened | None]:
    for line in lines:
        if line.startswith("data: "):
            try:
                yield shapes.Happened.model_validate_json(line.removeprefix("data: "))
            except ValidationError:
                raise DaemonFailed("a line of the daemon's events makes no sense") from None
        elif line.startswith(":"):
            yield None


def _connection(path: Path, seconds: float) -> httpx.Client:
    timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
    # No proxy from the environment, no redirect: these words go to the socket or nowhere.
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=timeout, trust_env=False)


def _require_answering(path: Path) -> None:
    """Tells a dead daemon's socket from a live one's; httpcore would leave its own attempt open."""
    with socket.socket(socket.AF_UNIX) as attempt:
        attempt.settimeout(CONNECT_SECONDS)
        try:
            attempt.connect(str(path))
        except OSError as error:
            raise DaemonNotRunning(f"no signerd answers at {path}: {error.strerror}") from None


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except httpx.ConnectError:
        raise DaemonNotRunning(f"no signerd answers at {path}") from None
    except httpx.TimeoutException:
        raise DaemonFailed("the daemon gave no answer in time") from None
    except httpx.TransportError as error:
        raise DaemonFailed(f"the connection to the daemon ended early: {error}") from None


def _refusal(answer: httpx.Response) -> SignerdError:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return DaemonFailed(f"the daemon answered {answer.status_code} and no more")
    return error_from(body)


def _segment(text: str) -> str:
    """An id as a part of the path: one that could lead elsewhere is no id. Raises InvalidRequest."""
    if not re.fullmatch(shapes.ID_PATTERN, text):
        raise InvalidRequest(f"'{text}' cannot be the id of anything", hint="Copy it as it is listed.")
    return text
