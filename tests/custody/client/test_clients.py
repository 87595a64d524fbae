"""The SDK against scripted transports: what is repeated, what is not, and what never leaks. Every call that a
person may make has a method in the SDK, whose docstring begins with the call.
"""

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
    handler, _ = scripted(httpx.Response(200, json={k: v for k, v in USER.items() if k != "Email"}))
    with pytest.raises(BadAnswer, match="Email"):
        client(handler).user_info()


def test_what_is_left_out_of_a_change_is_not_sent():
    handler, seen = scripted(httpx.Response(200, json=USER))
    client(handler).update_user_info(UpdateUserInfoRequest(surname=""))
    assert json.loads(seen[0].content) == {"surname": ""}


def test_a_problem_document_becomes_an_error_with_its_code():
    handler, _ = scripted(httpx.Response(403, json=PROBLEM))
    with pytest.raises(ApiError, match="not yours") as caught:
        client(handler).user_info()
    assert caught.value.code == caught.value.problem.code == "PERMISSION_DENIED"


def test_reads_are_repeated_with_growing_waits():
    handler, seen = scripted(httpx.ConnectError("down"), httpx.Response(503), httpx.Response(200, json=USER))
    used = client(handler)
    used.user_info()
    assert len(seen) == 3
    first, second = used.slept
    assert second > first > 0


def test_a_retry_after_is_honoured_and_a_long_one_is_the_callers_to_decide():
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json=PROBLEM)
    handler, _ = scripted(busy, httpx.Response(200, json=USER))
    used = client(handler)
    used.user_info()
    assert 7 <= used.slept[0] <= 14
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


def test_the_platform_ends_the_session_and_an_unreachable_one_does_not():
    told: list[Session | None] = []
    handler, _ = scripted(httpx.Response(401, json=PROBLEM), httpx.Response(401, json=PROBLEM))
    with pytest.raises(SignedOut):
        client(handler, on_session=told.append).user_info()
    assert told == [None]
    handler, _ = scripted(httpx.Response(401, json=PROBLEM), *[httpx.ConnectError("down")] * 4)
    used = client(handler, on_session=told.append)
    with pytest.raises(Unreachable):
        used.user_info()
    assert told == [None]
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
