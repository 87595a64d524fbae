"""The protocol of calls to the platform without I/O (see ``custody.common.exchange``): requests and answers,
errors, the renewal of sessions, and calls made from the platform's table, for both clients.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from inspect import signature
from math import inf
from types import MappingProxyType
from typing import Any, Final, ParamSpec, Protocol, TypeVar, overload
from urllib.parse import urlencode, urljoin, urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.client.errors import ApiError, BadAnswer, InsecureUrl, SignedOut, Unreachable
from custody.common import exchange
from custody.common.exchange import (
    Exclusive,
    HttpReply,
    HttpRequest,
    Plan,
    Why,
    is_success,
    method,
    retry_after,
)
from custody.schemas import auth
from custody.schemas.call import Auth, Call, Page
from custody.schemas.common import Unreadable, format_time
from custody.schemas.errors import Problem, fault_place, fault_words

Input = TypeVar("Input", bound=BaseModel)
Input_contra = TypeVar("Input_contra", bound=BaseModel, contravariant=True)
Answer = TypeVar("Answer")
Item = TypeVar("Item")
P = ParamSpec("P")
# By the host.
_NO_ANSWER: Final = MappingProxyType(
    {
        Why.NO_CONNECTION: "{} cannot be reached",
        Why.LATE: "{} did not answer in time",
        Why.ENDLESS: "the answer of {} has no end",
        Why.BROKEN: "the connection to {} broke off",
    }
)
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
# The longest pause between two pieces of an answer. A platform on this machine may be slow because the
# machine is busy, but no network can cut it off.
SILENCE_SECONDS: Final = 20.0
LOCAL_SILENCE_SECONDS: Final = 120.0
# From the first piece of an answer to its last: 64 MiB at three megabits a second.
TRANSFER_SECONDS: Final = 180.0
# A session is renewed this long before its end, so that it does not expire during a call.
RENEW_BEFORE_SECONDS: Final = 60.0
# RFC 6265, section 4.1.1.
_CARRIED: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{0,4000}")
# Of several cookies joined by commas, which stand nowhere else but in dates.
_COOKIE: Final = rf"(?:^|,)\s*{auth.REFRESH_COOKIE}\s*=\s*([^;,]*)"
# RFC 8288, section 3.
_LINK: Final = re.compile(r'<([^<>]*)>\s*;[^<]*?\brel="?next\b')


@dataclass(frozen=True)
class Session:
    """A short-lived access token and the refresh token. Neither is in the repr. ``ends_at`` is in seconds of
    the caller's clock.
    """

    sid: str
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    ends_at: float = 0.0

    @classmethod
    def of_service_account(cls, secret: str) -> "Session":
        """A program's session: valid until the platform refuses it, and never renewed."""
        return cls(sid="", access_token=secret, ends_at=inf)

    def is_due(self, now: float) -> bool:
        return not self.access_token or now >= self.ends_at - RENEW_BEFORE_SECONDS


OnSession = Callable[[Session | None], None]


@dataclass
class Core:
    """A client's state. The clock (seconds) is passed in, and the jitter may be (0 to 1). Raises
    InsecureUrl.
    """

    base_url: str
    now: Callable[[], float]
    session: Session | None = None
    on_session: OnSession | None = None
    jitter: Callable[[], float] = random.SystemRandom().random
    # Entries of lists that the platform said it cannot show: their ids, and why.
    unreadable: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_url(self.base_url)

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    def set_session(self, session: Session | None) -> None:
        self.session = session
        if self.on_session is not None:
            self.on_session(session)

    def build(
        self,
        method: str,
        path: str,
        body: BaseModel | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_seconds: float = 0.0,
    ) -> HttpRequest:
        """``wait_seconds``: how long the platform was asked to wait before it answers."""
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        content = None
        if body is not None:
            content = json.dumps(wire(body)).encode()
            sent["Content-Type"] = "application/json"
        params = {name: _param(value) for name, value in (query or {}).items() if value is not None}
        url = urljoin(self.base_url, path) + (f"?{urlencode(params, doseq=True)}" if params else "")
        is_local = self.host in LOOPBACK_HOSTS
        silence = wait_seconds + (LOCAL_SILENCE_SECONDS if is_local else SILENCE_SECONDS)
        return HttpRequest(method, url, silence, silence + TRANSFER_SECONDS, sent, content)


def _param(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return str(value).lower() if isinstance(value, bool) else value


def wire(body: BaseModel) -> dict[str, Any]:
    """A body as JSON values. Secrets are revealed only here."""
    shown: dict[str, Any] = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in type(body).model_fields:
        value = getattr(body, name)
        if hasattr(value, "get_secret_value"):
            shown[name] = value.get_secret_value()
    return shown


_NO_ADDRESS = "this is not the URL of a platform: write it like https://custody.example"


def check_url(url: str) -> None:
    """Refuse to send secrets in the clear.

    Raises:
        InsecureUrl: for anything but https, or http to this same machine.
    """
    if any(map(str.isspace, url)):
        raise InsecureUrl(_NO_ADDRESS)
    if not url.isascii():
        raise InsecureUrl("this address is not all ASCII: write its host in the form that begins with xn--")
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
        # Of no more than 63 characters between two dots: what looks names up fails with others.
        host = (parts.hostname or "").encode("idna")
    except ValueError:
        raise InsecureUrl(_NO_ADDRESS) from None
    if parts.scheme not in {"http", "https"} or not host or not has_port:
        raise InsecureUrl(_NO_ADDRESS)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise InsecureUrl(f"http://{parts.hostname} would send secrets in the clear: write https://")


@dataclass(frozen=True)
class Sent:
    """What a call sends: a body, a query (without None), the ids in its path, an ``Idempotency-Key``. The
    body may contain a password, and is not in the repr.
    """

    body: BaseModel | None = field(default=None, repr=False)
    query: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, int] = field(default_factory=dict)
    key: str | None = None


@overload
def sends(
    declared: Call[Any, list[Item | Unreadable]] | Call[Any, Page[Item | Unreadable]],
) -> Callable[[Callable[P, Any]], method[Core, P, list[Item]]]: ...


@overload
def sends(
    declared: Call[Any, Any], reader: type[Answer]
) -> Callable[[Callable[P, Any]], method[Core, P, Answer]]: ...


@overload
def sends(declared: Call[Any, Answer]) -> Callable[[Callable[P, Any]], method[Core, P, Answer]]: ...


def sends(
    declared: Call[Any, Any], reader: type[Any] | None = None
) -> Callable[[Callable[P, Any]], method[Core, P, Any]]:
    """A declared call: the function maps its arguments to the request. Where it returns None, or is the shape
    of the query, they are the query. What only reads is sent again where no answer came; a change, where the
    declaration says so or a key comes with it. A session that an answer opens is kept. ``reader``: of an
    answer that the arguments decide.
    """
    shape = declared.reader if reader is None else reader

    def described(given: Callable[P, Any]) -> method[Core, P, Any]:
        def plan(core: Core, /, *args: P.args, **kwargs: P.kwargs) -> Plan[Any]:
            sent: Any
            if isinstance(given, type) and issubclass(given, BaseModel):
                if args or not kwargs.keys() <= given.model_fields.keys():
                    raise TypeError(f"these arguments have names: {', '.join(given.model_fields)}")
                sent = Sent(query=kwargs)
            else:
                sent = given(*args, **kwargs)
            if sent is None:
                sent = Sent(query=signature(given).bind(*args, **kwargs).arguments)
            headers = {} if sent.key is None else {"Idempotency-Key": sent.key}
            path = declared.path.format_map(sent.path)
            request = core.build(declared.method, path, sent.body, sent.query, headers)
            again = declared.repeatable
            if again is None:
                again = sent.key is not None or not declared.writes
            try:
                if declared.needs is Auth.OPEN:
                    reply = checked((yield from attempt(core, request, repeatable=again)))
                else:
                    reply = yield from call(core, request, repeatable=again)
                answer = read_list(core, reply, shape)
            finally:
                if declared is auth.LOGOUT:
                    # Whatever the platform answers.
                    core.set_session(None)
            if isinstance(answer, auth.LoginResponse) and not answer.requires_2fa:
                ends_at = core.now() + (answer.expires_in or 0)
                core.set_session(Session(answer.sid, answer.token, refresh_token_of(reply), ends_at))
            return answer

        plan.__doc__ = f"``{declared.method} {declared.path}``: {declared.text}"
        plan.declared = declared  # type: ignore[attr-defined]  # a function's own attribute
        return method(plan, given)

    return described


def nothing() -> None:
    """For ``sends``: a call without arguments."""


def of_workspace(workspace_id: int) -> None:
    """For ``sends``: a call about a workspace."""


def of_vault(workspace_id: int, vault_id: str) -> None:
    """For ``sends``: a call about a vault."""


def posts(declared: Call[Input, Answer]) -> method[Core, [Input], Answer]:
    """A declared call that takes a body alone."""

    def given(body: Input) -> Sent:
        return Sent(body)

    given.__annotations__["body"] = declared.takes
    return sends(declared)(given)


class Keyed(Protocol[Input_contra]):
    def __call__(self, body: Input_contra, *, idempotency_key: str | None = None) -> Sent: ...


def keyed(declared: Call[Input, Any]) -> Keyed[Input]:
    """For ``sends``, of a declared call that creates a record: its body, and an ``Idempotency-Key``."""

    def given(body: Input, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    given.__annotations__["body"] = declared.takes
    return given


def call(core: Core, request: HttpRequest, *, repeatable: bool) -> Plan[HttpReply]:
    """Send with the session; renew it when it is due or when the platform refuses it.

    Raises:
        SignedOut, Unreachable, BadAnswer, ApiError.
    """
    if core.session is None:
        raise SignedOut("you are not signed in")
    if core.session.is_due(core.now()):
        yield Exclusive(renew(core, stale=core.session))
    used = core.session
    reply = yield from attempt(core, _with_token(core, request), repeatable=repeatable)
    if reply.status == HTTPStatus.UNAUTHORIZED:
        yield Exclusive(renew(core, stale=used))
        reply = yield from attempt(core, _with_token(core, request), repeatable=repeatable)
    return checked(reply)


def _with_token(core: Core, request: HttpRequest) -> HttpRequest:
    if core.session is None:
        raise SignedOut("the session has ended")
    headers = {**request.headers, "Authorization": f"Bearer {core.session.access_token}"}
    return replace(request, headers=headers)


def renew(core: Core, *, stale: Session) -> Plan[None]:
    """Exchange the refresh cookie for a new access token, unless another call did since ``stale`` was read.

    Run it alone (``Exclusive``): two renewals at once would look like a stolen refresh token.

    Raises:
        SignedOut: only where the platform says so; an unreachable platform ends no session.
    """
    session = core.session
    if session is not None and session is not stale:
        return
    if session is None or not session.refresh_token:
        is_program = session is not None and session.ends_at == inf
        raise SignedOut("the platform refuses this secret" if is_program else "the session has ended")
    cookie = {"Cookie": f"{auth.REFRESH_COOKIE}={session.refresh_token}"}
    request = core.build(
        auth.REFRESH.method, auth.REFRESH.path, auth.RefreshRequest(sid=session.sid), headers=cookie
    )
    # Safe to repeat: the previous refresh token stays valid until its successor is first used.
    reply = yield from attempt(core, request, repeatable=True)
    if reply.status == HTTPStatus.UNAUTHORIZED:
        core.set_session(None)
        raise SignedOut("the platform ended the session")
    answer = read(checked(reply), auth.RefreshResponse)
    refresh_token = refresh_token_of(reply) or session.refresh_token
    core.set_session(Session(answer.sid, answer.token, refresh_token, core.now() + answer.expires_in))


def refresh_token_of(reply: HttpReply) -> str:
    """The refresh cookie; empty where there is none. Raises BadAnswer where it cannot be sent back."""
    tokens = set(re.findall(_COOKIE, reply.headers.get("set-cookie", "")))
    if len(tokens) > 1:
        raise BadAnswer(f"{reply.path}: two sessions at once")
    token = tokens.pop() if tokens else ""
    if not _CARRIED.fullmatch(token):
        raise BadAnswer(f"{reply.path}: a session that cannot be sent back")
    return token


def attempt(core: Core, request: HttpRequest, *, repeatable: bool) -> Plan[HttpReply]:
    """One request, repeated with back-off where that is safe.

    Raises:
        Unreachable: no answer after all tries. BadAnswer: one that is compressed or too large.
    """
    outcome = yield from exchange.attempt(request, repeatable=repeatable, jitter=core.jitter, now=core.now)
    if isinstance(outcome, HttpReply):
        return outcome
    if outcome.why is Why.UNFIT:
        raise BadAnswer(str(outcome.cause)) from None
    raise Unreachable(_NO_ANSWER[outcome.why].format(core.host)) from outcome.cause


def checked(reply: HttpReply) -> HttpReply:
    """The answer where it is a success or a 304; otherwise raises.


    Raises:
        ApiError: a problem document. BadAnswer: anything else.
    """
    if is_success(reply):
        return reply
    try:
        problem = Problem.model_validate_json(reply.content)
    except ValidationError:
        raise BadAnswer(f"{reply.path}: status {reply.status} without a problem document") from None
    raise ApiError(problem, retry_after_seconds=retry_after(reply, 0.0))


def read_list(core: Core, reply: HttpReply, shape: type[Answer] | TypeAdapter[Answer]) -> Answer:
    """`read` of what may be a list, or a page of one: entries that the platform cannot show are left out, and
    kept in ``core.unreadable``.
    """
    if b'"unreadable"' in reply.content:
        with suppress(ValueError):
            items = json.loads(reply.content)
            if isinstance(items, list):
                left = [each for each in items if not isinstance(each, dict) or "unreadable" not in each]
                core.unreadable += [each for each in items if each not in left]
                reply = replace(reply, content=json.dumps(left).encode())
            elif isinstance(items, dict) and isinstance(items.get("unreadable"), list):
                core.unreadable += items["unreadable"]
    return read(reply, shape)


def read(reply: HttpReply, shape: type[Answer] | TypeAdapter[Answer]) -> Answer:
    """The answer in its shape.

    Raises:
        BadAnswer: where a required field is missing or of another type.
    """
    try:
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            return shape.model_validate_json(reply.content)
        adapter = shape if isinstance(shape, TypeAdapter) else TypeAdapter(shape)
        return adapter.validate_json(reply.content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = fault_place(first) or "the body"
        raise BadAnswer(f"{reply.path}: {place}: {fault_words(first)}") from None


def next_page(reply: HttpReply) -> str | None:
    """The address of the page after this one."""
    match = _LINK.search(reply.headers.get("link", ""))
    return None if match is None else match[1]
