"""One call as a conversation without I/O: a plan yields what to do and is sent what came back.

Both clients drive the same plans, so that retrying, renewing the session and reading errors exist once.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.client.errors import ApiError, BadAnswer, InsecureUrl, SignedOut, Unreachable
from custody.client.session import Session
from custody.schemas.auth import REFRESH_COOKIE, RefreshRequest, RefreshResponse
from custody.schemas.errors import Problem

Answer = TypeVar("Answer")
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
TRIES: Final = 4
# RFC 9110 lets a server name any delay; we wait no longer than this before telling the caller.
LONGEST_RETRY_SECONDS: Final = 30.0
FIRST_BACKOFF_SECONDS: Final = 0.25
# RFC 6265, section 4.1.1.
_CARRIED: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{0,4000}")
BUSY_STATUSES: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Send:
    """Send this; a response or an httpx.TransportError comes back."""

    request: httpx.Request


@dataclass(frozen=True)
class Wait:
    """Wait before the next try."""

    seconds: float


@dataclass(frozen=True)
class Exclusive:
    """Run this plan while no other plan of the same client runs one: two concurrent renewals would look like
    a stolen refresh token.
    """

    plan: "Plan[None]"


Step = Send | Wait | Exclusive
Plan = Generator[Step, "httpx.Response | httpx.TransportError | None", Answer]


@dataclass
class Core:
    """What a client knows. The clock (seconds) and the jitter (0 to 1) are passed in."""

    base_url: httpx.URL
    now: Callable[[], float]
    jitter: Callable[[], float]
    session: Session | None = None
    on_session: Callable[[Session | None], None] = field(default=lambda _session: None)

    def set_session(self, session: Session | None) -> None:
        self.session = session
        self.on_session(session)

    def build(
        self,
        method: str,
        path: str,
        body: BaseModel | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> httpx.Request:
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        content = None
        if body is not None:
            content = json.dumps(wire(body)).encode()
            sent["Content-Type"] = "application/json"
        params = {k: v for k, v in (query or {}).items() if v is not None}
        extensions = {} if timeout is None else {"timeout": httpx.Timeout(timeout).as_dict()}
        url = self.base_url.join(path)
        return httpx.Request(method, url, content=content, params=params, headers=sent, extensions=extensions)


def wire(body: BaseModel) -> dict[str, Any]:
    """A body as the platform reads it, secrets revealed: this is the one place where they are."""
    shown: dict[str, Any] = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in type(body).model_fields:
        value = getattr(body, name)
        if hasattr(value, "get_secret_value"):
            shown[name] = value.get_secret_value()
    return shown


def check_url(url: str) -> httpx.URL:
    """Refuse to send secrets in the clear.

    Raises:
        InsecureUrl: for anything but https, or http to this same machine.
    """
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return httpx.URL(url)
    if parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS:
        return httpx.URL(url)
    raise InsecureUrl(
        f"{parts.scheme or 'no scheme'}://{parts.hostname or '?'} would send secrets in the clear"
    )


def read(response: httpx.Response, shape: type[Answer] | TypeAdapter[Answer]) -> Answer:
    """The answer in its shape.

    Raises:
        BadAnswer: where a required field is missing or of another type.
    """
    adapter = shape if isinstance(shape, TypeAdapter) else TypeAdapter(shape)
    try:
        return adapter.validate_json(response.content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise BadAnswer(f"{response.request.url.path}: {place or 'the body'}: {first['msg']}") from None


def call(core: Core, request: httpx.Request, *, repeatable: bool) -> Plan[httpx.Response]:
    """Send with the session; renew it when due or when the platform says it ended; repeat only what
    is safe.
    """
    if core.session is None:
        raise SignedOut("nobody is signed in")
    if core.session.is_due(core.now()):
        yield Exclusive(renew(core, stale=core.session))
    used = core.session
    response = yield from attempt(core, _with_token(core, request), repeatable=repeatable)
    if response.status_code == httpx.codes.UNAUTHORIZED:
        yield Exclusive(renew(core, stale=used))
        response = yield from attempt(core, _with_token(core, request), repeatable=repeatable)
    return checked(response)


def _with_token(core: Core, request: httpx.Request) -> httpx.Request:
    if core.session is None:
        raise SignedOut("the session has ended")
    headers = {**request.headers, "authorization": f"Bearer {core.session.access_token}"}
    return httpx.Request(
        request.method, request.url, headers=headers, content=request.content, extensions=request.extensions
    )


def renew(core: Core, *, stale: Session) -> Plan[None]:
    """Exchange the refresh cookie for a new access token, unless another call did since ``stale`` was read.

    Raises:
        SignedOut: on the platform's own word only; an unreachable platform ends no session.
    """
    session = core.session
    if session is not None and session is not stale:
        return
    if session is None or not session.refresh_token:
        raise SignedOut("the session has ended")
    request = core.build("POST", "/auth/refresh", RefreshRequest(sid=session.sid))
    request.headers["cookie"] = f"{REFRESH_COOKIE}={session.refresh_token}"
    # Safe to repeat: the previous refresh token stays valid until its successor is first used.
    response = yield from attempt(core, request, repeatable=True)
    if response.status_code == httpx.codes.UNAUTHORIZED:
        core.set_session(None)
        raise SignedOut("the platform ended the session")
    answer = read(checked(response), RefreshResponse)
    refresh_token = refresh_token_of(response) or session.refresh_token
    core.set_session(Session(answer.sid, answer.token, refresh_token, core.now() + answer.expires_in))


def refresh_token_of(response: httpx.Response) -> str:
    """The cookie; empty where there is none. Raises BadAnswer where no header could carry it back."""
    try:
        token = response.cookies.get(REFRESH_COOKIE) or ""
    except httpx.CookieConflict:
        raise BadAnswer(f"{response.request.url.path}: two sessions at once") from None
    if not _CARRIED.fullmatch(token):
        raise BadAnswer(f"{response.request.url.path}: a session that cannot be sent back")
    return token


def attempt(core: Core, request: httpx.Request, *, repeatable: bool) -> Plan[httpx.Response]:
    """One request, repeated with back-off where that is safe.

    Raises:
        Unreachable: no answer in the tries allowed.
    """
    delay = FIRST_BACKOFF_SECONDS
    for remaining in reversed(range(TRIES if repeatable else 1)):
        result = yield Send(request)
        if isinstance(result, httpx.Response):
            if result.status_code not in BUSY_STATUSES or not remaining:
                return result
            pause = max(retry_after(result, core.now()) or 0.0, delay)
            if pause > LONGEST_RETRY_SECONDS:
                return result
        else:
            if not remaining:
                raise Unreachable(f"{request.url.host}: {type(result).__name__}") from result
            pause = delay
        yield Wait(pause * (1.0 + core.jitter()))
        delay *= 2
    raise AssertionError("unreachable: the last try returns or raises")


def retry_after(response: httpx.Response, now: float) -> float | None:
    """Seconds to wait, from either form of ``Retry-After`` (RFC 9110, section 10.2.3)."""
    text = response.headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def checked(response: httpx.Response) -> httpx.Response:
    """The response where it is a success or a 304; else the platform's own words.

    Raises:
        ApiError: a problem document. BadAnswer: anything else.
    """
    if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
        return response
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        raise BadAnswer(
            f"{response.request.url.path}: status {response.status_code} without a problem document"
        ) from None
    raise ApiError(problem, retry_after_seconds=retry_after(response, 0.0))
