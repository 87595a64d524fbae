"""The SDK against scripted transports: what is repeated, what is not, and what never leaks. Every call that a
person may make has a method in the SDK, whose docstring begins with the call.
"""

import asyncio
import json
import ssl
from collections.abc import Callable

import httpx
import pytest

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
from custody.schemas.auth import LoginRequest
from custody.schemas.keys import RegisterKeyRequest
from custody.schemas.proposals import SignPsbtRequest
from custody.schemas.users import UpdateUserInfoRequest
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

PLATFORM = "https://platform.example"
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


def client(
    *answers: Answer, session: Session | None = FRESH, url: str = PLATFORM, **kwargs: object
) -> Client:
    """With these answers in turn; the last one repeats. ``seen``: the requests; ``slept``: the waits between
    them.
    """
    seen: list[httpx.Request] = []
    slept: list[float] = []
    waiting = list(answers)

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    outside = {"transport": through(httpx.MockTransport(handler)), "now": lambda: 1_000.0}
    made = Client(url, session=session, sleep=slept.append, **outside, **kwargs)
    made.seen, made.slept = seen, slept  # type: ignore[attr-defined]
    return made


def user() -> httpx.Response:
    return httpx.Response(200, json=USER)


def renewed(token: str = "access-two") -> httpx.Response:
    body = {"success": True, "token": token, "sid": FRESH.sid, "expires_in": 900}
    cookie = {"Set-Cookie": "refresh_token=refresh-two; HttpOnly; Path=/auth"}
    return httpx.Response(200, json=body, headers=cookie)


def test_answers_are_typed_and_unknown_fields_are_tolerated():
    used = client(user(), httpx.Response(200, json={k: v for k, v in USER.items() if k != "Email"}))
    assert used.user_info().uuid == 7
    assert used.seen[0].headers["authorization"] == "Bearer access-one"
    with pytest.raises(BadAnswer, match="Email"):
        used.user_info()


def test_what_is_left_out_of_a_change_is_not_sent():
    used = client(user())
    used.update_user_info(UpdateUserInfoRequest(surname=""))
    assert json.loads(used.seen[0].content) == {"surname": ""}


def test_a_problem_document_becomes_an_error_with_its_code():
    with pytest.raises(ApiError, match="not yours") as caught:
        client(httpx.Response(403, json=PROBLEM)).user_info()
    assert caught.value.code == caught.value.problem.code == "PERMISSION_DENIED"


def test_reads_are_repeated_with_growing_waits():
    used = client(httpx.ConnectError("down"), httpx.Response(503), user())
    used.user_info()
    assert len(used.seen) == 3
    first, second = used.slept
    assert second > first > 0


def test_a_retry_after_is_honoured_and_a_long_one_is_the_callers_to_decide():
    used = client(httpx.Response(429, headers={"Retry-After": "7"}, json=PROBLEM), user())
    used.user_info()
    assert 7 <= used.slept[0] <= 14
    used = client(httpx.Response(429, headers={"Retry-After": "3600"}, json=PROBLEM))
    with pytest.raises(ApiError) as caught:
        used.user_info()
    assert caught.value.retry_after_seconds == 3600
    assert len(used.seen) == 1


def test_an_unsafe_request_is_sent_once():
    used = client(httpx.ReadError("cut"))
    with pytest.raises(Unreachable):
        used.register_key(OFFER)
    assert len(used.seen) == 1


def test_an_idempotency_key_makes_it_safe_and_stays_the_same():
    key = {"ID": "k", "UserID": "7", "KeyType": "xpub", "Status": "active", "Net": "testnet"}
    unknown = ("PubKeyHex", "Xpub", "MasterFingerprint", "DerivationBasePath", "Label")
    key |= {name: {"Valid": False} for name in unknown}
    key |= dict.fromkeys(("CreatedAt", "UpdatedAt"), "2026-01-01T00:00:00.000Z")
    used = client(httpx.ReadError("cut"), httpx.Response(200, json=key))
    used.register_key(OFFER, idempotency_key="one")
    assert [request.headers["idempotency-key"] for request in used.seen] == ["one"] * 2


def test_an_expiring_token_is_renewed_first_and_reported():
    told: list[Session | None] = []
    due = Session(FRESH.sid, "access-one", "refresh-one", ends_at=1_000.0)
    used = client(renewed(), user(), session=due, on_session=told.append)
    used.user_info()
    first, second = used.seen
    assert [first.url.path, second.url.path] == ["/auth/refresh", "/api/v1/get-user-info"]
    assert first.headers["cookie"] == "refresh_token=refresh-one"
    assert second.headers["authorization"] == "Bearer access-two"
    assert "cookie" not in second.headers
    assert told[-1] is not None
    assert told[-1].refresh_token == "refresh-two"


def test_a_401_in_the_middle_renews_once_and_repeats():
    used = client(httpx.Response(401, json=PROBLEM), renewed(), user())
    used.user_info()
    assert len(used.seen) == 3


def test_the_platform_ends_the_session_and_an_unreachable_one_does_not():
    told: list[Session | None] = []
    refused = httpx.Response(401, json=PROBLEM)
    with pytest.raises(SignedOut):
        client(refused, refused, on_session=told.append).user_info()
    assert told == [None]
    used = client(refused, *[httpx.ConnectError("down")] * 4, on_session=told.append)
    with pytest.raises(Unreachable):
        used.user_info()
    assert told == [None]
    assert used.core.session == FRESH


def test_not_modified_is_an_answer():
    used = client(httpx.Response(304, headers={"ETag": '"v1"'}))
    assert used.proposals(1, awaiting="me", etag='"v1"', wait_seconds=30).not_modified
    assert used.seen[0].headers["prefer"] == "wait=30"
    assert used.seen[0].extensions["timeout"]["read"] > 30


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
    used = client(user(), url=url)
    used.user_info()
    assert used.seen[0].extensions["timeout"]["read"] == seconds


def test_redirects_are_not_followed():
    used = client(httpx.Response(307, headers={"Location": "https://elsewhere.example/"}))
    with pytest.raises(BadAnswer, match="307"):
        used.user_info()
    assert len(used.seen) == 1


def test_secrets_stay_out_of_repr():
    shown = repr(FRESH) + repr(SignPsbtRequest(psbt_id="a", workspace_id=1, decision="reject"))
    assert "access-one" not in shown
    assert "refresh-one" not in shown


def test_the_password_is_sent_and_never_shown():
    answer = {"requires_2FA": True, "token": "", "token_2fa": "x" * 20, "sid": FRESH.sid, "user_info": None}
    used = client(httpx.Response(200, json=answer), session=None)
    result = used.login(LoginRequest(email="a@b.example", password="correct horse"))
    assert json.loads(used.seen[0].content)["password"] == "correct horse"
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
        return user() if fine else httpx.Response(401, json=PROBLEM)

    transport = httpx.MockTransport(handler)
    async with AsyncClient(PLATFORM, session=FRESH, transport=transport, now=lambda: 1_000.0) as api:
        users = await asyncio.gather(*(api.user_info() for _ in range(5)))
    assert {user.uuid for user in users} == {7}
    assert renewals == 1


def test_a_private_authority_is_trusted_alone(tmp_path):
    """Certificates cannot be left unverified; a file that holds no certificate is refused at once."""
    empty = tmp_path / "ca.pem"
    empty.write_text("not a certificate")
    with pytest.raises(ssl.SSLError):
        Client(PLATFORM, ca_file=empty)
    with pytest.raises(FileNotFoundError):
        Client(PLATFORM, ca_file=tmp_path / "absent.pem")
