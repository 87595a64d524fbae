"""The SDK against scripted transports: what is repeated, what is not, and what never leaks. Every call that a
person may make has a method in the SDK, whose docstring begins with the call.
"""

import inspect
import json
import re
import ssl
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import httpx
import pytest
from pydantic import BaseModel, SecretStr

from custody.client import (
    ApiError,
    AsyncClient,
    BadAnswer,
    Client,
    InsecureUrl,
    Session,
    SignedOut,
    Unreachable,
)
from custody.client.clients import Api
from custody.schemas.auth import LoginRequest
from custody.schemas.calls import CALLS
from custody.schemas.keys import RegisterKeyRequest
from custody.schemas.proposals import SignPsbtRequest
from tests.support.sdk import through

PROBLEM = {"title": "No", "status": 403, "detail": "not yours", "code": "PERMISSION_DENIED", "trace_id": "t1"}
NONE = {"String": "", "Valid": False}
USER = {
    "UUID": 7, "Email": "a@b.example", "FirstName": NONE, "Surname": NONE, "LastLogin": {"Valid": False},
    "PhoneNumber": NONE, "DefaultOrg": 1, "DefaultWorkspace": 1, "OrganisationsInfo": {"Organisations": []},
    "a_field_of_tomorrow": 1,
}  # fmt: skip
OFFER = RegisterKeyRequest(
    network="testnet", xpub="x" * 111, master_fingerprint="00112233", derivation_base_path="m/48'/1'/0'/2'"
)
FRESH = Session("sid-0123456789abcdef", "access-one", "refresh-one", ends_at=10_000.0)

Handler = Callable[[httpx.Request], httpx.Response]


def client(handler: Handler, session: Session | None = FRESH, **kwargs: object) -> Client:
    slept: list[float] = []
    made = Client(
        "https://platform.example",
        session=session,
        transport=through(httpx.MockTransport(handler)),
        now=lambda: 1_000.0,
        sleep=slept.append,
        **kwargs,
    )
    made.slept = slept  # type: ignore[attr-defined]
    return made


def scripted(*answers: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    seen: list[httpx.Request] = []
    queue = list(answers)

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handler, seen


def renewed(token: str = "access-two") -> httpx.Response:
    body = {"success": True, "token": token, "sid": FRESH.sid, "expires_in": 900}
    return httpx.Response(
        200, json=body, headers={"Set-Cookie": "refresh_token=refresh-two; HttpOnly; Path=/auth"}
    )


def test_answers_are_typed_and_unknown_fields_are_tolerated():
    handler, seen = scripted(httpx.Response(200, json=USER))
    assert client(handler).user_info().uuid == 7
    assert seen[0].headers["authorization"] == "Bearer access-one"


def test_a_missing_required_field_is_named():
    handler, _ = scripted(httpx.Response(200, json={k: v for k, v in USER.items() if k != "Email"}))
    with pytest.raises(BadAnswer, match="Email"):
        client(handler).user_info()


def test_a_problem_document_becomes_an_error_with_its_code():
    handler, _ = scripted(httpx.Response(403, json=PROBLEM))
    with pytest.raises(ApiError, match="not yours") as caught:
        client(handler).user_info()
    assert caught.value.code == caught.value.problem.code == "PERMISSION_DENIED"


def test_an_answer_of_something_else_is_refused():
    handler, _ = scripted(httpx.Response(502, text="<html>proxy</html>"), *[httpx.Response(502)] * 3)
    with pytest.raises(BadAnswer, match="502"):
        client(handler).user_info()


def test_reads_are_repeated_with_growing_waits():
    handler, seen = scripted(httpx.ConnectError("down"), httpx.Response(503), httpx.Response(200, json=USER))
    used = client(handler)
    used.user_info()
    assert len(seen) == 3
    first, second = used.slept
    assert second > first > 0


def test_a_retry_after_is_honoured():
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json=PROBLEM)
    handler, _ = scripted(busy, httpx.Response(200, json=USER))
    used = client(handler)
    used.user_info()
    assert 7 <= used.slept[0] <= 14


def test_a_long_retry_after_is_the_callers_to_decide():
    handler, seen = scripted(httpx.Response(429, headers={"Retry-After": "3600"}, json=PROBLEM))
    with pytest.raises(ApiError) as caught:
        client(handler).user_info()
    assert caught.value.retry_after_seconds == 3600
    assert len(seen) == 1


def test_an_unsafe_request_is_sent_once():
    handler, seen = scripted(httpx.ReadError("cut"))
    with pytest.raises(Unreachable):
        client(handler).register_key(OFFER)
    assert len(seen) == 1


def test_an_idempotency_key_makes_it_safe_and_stays_the_same():
    key = {"ID": "k", "UserID": "7", "KeyType": "xpub", "Status": "active", "Net": "testnet"}
    key |= {
        n: {"Valid": False} for n in ("PubKeyHex", "Xpub", "MasterFingerprint", "DerivationBasePath", "Label")
    }
    key |= {"CreatedAt": "2026-01-01T00:00:00.000Z", "UpdatedAt": "2026-01-01T00:00:00.000Z"}
    handler, seen = scripted(httpx.ReadError("cut"), httpx.Response(200, json=key))
    client(handler).register_key(OFFER, idempotency_key="one")
    assert {request.headers["idempotency-key"] for request in seen} == {"one"}


def test_an_expiring_token_is_renewed_first_and_reported():
    told: list[Session | None] = []
    handler, seen = scripted(renewed(), httpx.Response(200, json=USER))
    due = Session(FRESH.sid, "access-one", "refresh-one", ends_at=1_000.0)
    client(handler, due, on_session=told.append).user_info()
    assert [r.url.path for r in seen] == ["/auth/refresh", "/api/v1/get-user-info"]
    assert seen[0].headers["cookie"] == "refresh_token=refresh-one"
    assert seen[1].headers["authorization"] == "Bearer access-two"
    assert "cookie" not in seen[1].headers
    assert told[-1] is not None
    assert told[-1].refresh_token == "refresh-two"


def test_a_401_in_the_middle_renews_once_and_repeats():
    handler, seen = scripted(httpx.Response(401, json=PROBLEM), renewed(), httpx.Response(200, json=USER))
    client(handler).user_info()
    assert len(seen) == 3


def test_the_platform_ends_the_session():
    told: list[Session | None] = []
    handler, _ = scripted(httpx.Response(401, json=PROBLEM), httpx.Response(401, json=PROBLEM))
    with pytest.raises(SignedOut):
        client(handler, on_session=told.append).user_info()
    assert told == [None]


def test_an_unreachable_platform_ends_no_session():
    told: list[Session | None] = []
    handler, _ = scripted(httpx.Response(401, json=PROBLEM), *[httpx.ConnectError("down")] * 4)
    used = client(handler, on_session=told.append)
    with pytest.raises(Unreachable):
        used.user_info()
    assert told == []
    assert used.core.session == FRESH


def test_not_modified_is_an_answer():
    handler, seen = scripted(httpx.Response(304, headers={"ETag": '"v1"'}))
    page = client(handler).proposals(1, awaiting="me", etag='"v1"', wait_seconds=30)
    assert page.not_modified
    assert seen[0].headers["prefer"] == "wait=30"
    assert seen[0].extensions["timeout"]["read"] > 30


@pytest.mark.parametrize(
    "url",
    [
        "http://platform.example",
        "ftp://127.0.0.1",
        "platform.example",
        "http://127.0.0.1.evil.example",
        "https://b\u00fccher.example",
        "https://platform.example:65536",
        f"https://{'a' * 64}.example",
        "https://[::1",
    ],
)
def test_secrets_are_never_sent_in_the_clear(url: str):
    with pytest.raises(InsecureUrl):
        Client(url)


@pytest.mark.parametrize(("url", "seconds"), [("https://platform.example", 20), ("http://127.0.0.1:1", 120)])
def test_a_platform_on_this_machine_may_be_slow_and_one_elsewhere_is_given_up(url: str, seconds: int):
    handler, seen = scripted(httpx.Response(200, json=USER))
    with Client(
        url, session=FRESH, transport=through(httpx.MockTransport(handler)), now=lambda: 1_000.0
    ) as platform:
        platform.user_info()
    assert seen[0].extensions["timeout"]["read"] == seconds


def test_redirects_are_not_followed():
    handler, seen = scripted(httpx.Response(307, headers={"Location": "https://elsewhere.example/"}))
    with pytest.raises(BadAnswer, match="307"):
        client(handler).user_info()
    assert len(seen) == 1


def test_secrets_stay_out_of_repr():
    shown = repr(FRESH) + repr(SignPsbtRequest(psbt_id="a", workspace_id=1, decision="reject"))
    assert "access-one" not in shown
    assert "refresh-one" not in shown


def test_the_password_is_sent_and_never_shown():
    answer = {"requires_2FA": True, "token": "", "token_2fa": "x" * 20, "sid": FRESH.sid, "user_info": None}
    handler, seen = scripted(httpx.Response(200, json=answer))
    result = client(handler, None).login(LoginRequest(email="a@b.example", password="correct horse"))
    assert json.loads(seen[0].content)["password"] == "correct horse"
    assert result.requires_2fa
    assert "x" * 20 not in repr(result)


@pytest.mark.anyio
async def test_the_async_client_runs_the_same_plans_and_renews_once_for_many():
    renewals = 0

    async def handler(request: httpx.Request) -> httpx.Response:
        nonlocal renewals
        if request.url.path == "/auth/refresh":
            renewals += 1
            return renewed()
        fine = request.headers["authorization"] == "Bearer access-two"
        return httpx.Response(200, json=USER) if fine else httpx.Response(401, json=PROBLEM)

    import asyncio

    transport = httpx.MockTransport(handler)
    async with AsyncClient(
        "https://platform.example", session=FRESH, transport=transport, now=lambda: 1_000.0
    ) as api:
        users = await asyncio.gather(*(api.user_info() for _ in range(5)))
    assert {user.uuid for user in users} == {7}
    assert renewals == 1


def test_a_private_authority_is_trusted_alone(tmp_path):
    """Certificates cannot be left unverified; a file that holds no certificate is refused at once."""
    empty = tmp_path / "ca.pem"
    empty.write_text("not a certificate")
    with pytest.raises(ssl.SSLError):
        Client("https://platform.example", ca_file=empty)
    with pytest.raises(FileNotFoundError):
        Client("https://platform.example", ca_file=tmp_path / "absent.pem")


# Another program's, with a signature of its own in the place of a sign-in; and what a client does by itself.
NOT_A_PERSONS = {"/webhooks/purchases", "/auth/refresh"}


def described() -> dict[str, str]:
    """By the name of the method: the call that its docstring begins with."""
    found = {}
    for name in dir(Api):
        told = re.match(r"``(GET|POST) (/[^`?]+)", _plan(name).__doc__ or "")
        if told:
            found[name] = f"{told.group(1)} {told.group(2)}"
    return found


def _plan(name: str) -> object:
    """As it is described: through the class it would be bound to a client."""
    return next(vars(base)[name] for base in Api.__mro__ if name in vars(base))


@pytest.mark.parametrize(
    "call",
    sorted(f"{row.method} {row.path}" for row in CALLS if row.path not in NOT_A_PERSONS),
)
def test_every_endpoint_has_a_method(call: str) -> None:
    assert call in described().values()


def test_no_method_calls_what_is_not_served() -> None:
    served = {f"{row.method} {row.path}" for row in CALLS}
    assert set(described().values()) <= served


ROWS = {f"{row.method} {row.path}": row for row in CALLS}


DAY = datetime(2026, 3, 1, tzinfo=UTC)
PLAIN = {int: 7, bool: True, bytes: b"a", datetime: DAY, date: DAY.date(), BaseModel: OFFER}
TEXTS = {"email": "a@b.example", "otp": "123456", "code": "123456", "path": "/api/v1/delete-role"}
# Beside another one of which it stands in the place.
LEFT_OUT = {"enabled"}


def given(kind: Any, name: str = "") -> Any:
    """A value of this type. Of a shape every field, unchecked: its names are what is compared."""
    parts = [part for part in get_args(kind) if part not in (NoneType, ...)]
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    if kind in PLAIN:
        value = PLAIN[kind]
    elif kind in (str, SecretStr):
        value = kind(TEXTS.get(name, "0" * 32))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        value = next(iter(kind))
    elif get_origin(kind) is Literal:
        value = parts[0]
    elif get_origin(kind) in (list, tuple, Sequence, Iterable):
        value = (list if get_origin(kind) is list else tuple)([given(parts[0])])
    elif get_origin(kind) is dict:
        value = {}
    elif parts:
        value = given(parts[0], name)
    else:
        make = getattr(kind, "model_construct", kind)
        hints = get_type_hints(kind)
        value = make(**{each: given(hints[each], each) for each in fields})
    return value


@pytest.mark.parametrize("name", sorted(described()))
def test_a_call_sends_what_its_endpoint_takes(name: str) -> None:
    seen: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(403, json=PROBLEM)

    call = getattr(client(refuse), name)
    arguments = {
        each.name: "key" if each.name == "idempotency_key" else given(each.annotation, each.name)
        for each in inspect.signature(call).parameters.values()
        if each.name not in LEFT_OUT and each.kind is not each.VAR_KEYWORD
    }
    with pytest.raises(ApiError):
        call(**arguments)
    (request,) = seen
    row = ROWS[described()[name]]
    assert request.method == row.method
    assert re.fullmatch(re.sub(r"{\w+}", r"\\w+", row.path), request.url.path)
    taken = {} if row.shape is None else row.shape.model_fields
    names = {field.alias or each: field.is_required() for each, field in taken.items()}
    sent = set(request.url.params) if row.method == "GET" else set(json.loads(request.content or b"{}"))
    assert sent <= set(names)
    assert {each for each, is_required in names.items() if is_required} <= sent
