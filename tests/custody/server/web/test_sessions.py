"""Sessions: the tokens of a sign-in and their families, and a user's list of sessions."""

import httpx
import pytest

from custody.schemas.auth import REFRESH_COOKIE
from tests.support.accounts import Session, register, sign_in
from tests.support.platform import World

OTHER = "olga@example.org"


@pytest.fixture
def carol(world: World) -> str:
    return register(world)


def listed(session: Session) -> list[dict]:
    answer = session.user.get("/auth/sessions")
    assert answer.status_code == 200, answer.text
    return answer.json()


def revoke(session: Session, **body: object):
    return session.user.post("/auth/sessions/revoke", body)


def test_lists_the_callers_live_sessions_the_newest_first(world: World, carol: str) -> None:
    desk = sign_in(world, device="desk", location="Riga")
    world.clock.advance(minutes=5)
    phone = sign_in(world)
    sign_in(world, register(world, OTHER))
    first, second = listed(phone)
    assert first == {
        "session_id": first["session_id"],
        "device": {"String": "", "Valid": False},
        "location": {"String": "", "Valid": False},
        "created_at": "2026-03-01T12:05:00.000Z",
        "last_used_at": "2026-03-01T12:05:00.000Z",
        "current": True,
    }
    assert (second["device"]["String"], second["location"]["String"]) == ("desk", "Riga")
    assert [each["current"] for each in listed(desk)] == [False, True]


def test_a_renewal_is_a_use(world: World, carol: str) -> None:
    session = sign_in(world)
    world.clock.advance(minutes=10)
    assert session.refresh().status_code == 200
    (only,) = listed(session)
    assert (only["created_at"][11:16], only["last_used_at"][11:16]) == ("12:00", "12:10")


def test_a_listed_id_opens_nothing(world: World, carol: str) -> None:
    """P49: beside its cookie, ``sid`` renews a session; the list names it otherwise."""
    session = sign_in(world)
    (only,) = listed(session)
    assert session.sid not in str(only)
    session.sid = only["session_id"]
    assert session.refresh().status_code == 401


def test_sessions_that_cannot_be_renewed_any_more_are_not_listed(world: World, carol: str) -> None:
    sign_in(world)
    world.clock.advance(days=30)
    assert len(listed(sign_in(world))) == 1


def test_ending_one_kills_its_tokens_at_once(world: World, carol: str) -> None:
    mine, lost = sign_in(world), sign_in(world)
    name = next(each["session_id"] for each in listed(mine) if not each["current"])
    assert revoke(mine, session_id=name).json() == {"success": True, "ended": 1}
    assert not lost.is_alive
    assert lost.refresh().status_code == 401
    assert mine.is_alive
    assert len(listed(mine)) == 1
    assert world.audit_actions()[-1] == "SESSION_ENDED"
    assert revoke(mine, session_id=name).status_code == 404


def test_ending_all_others_leaves_this_one(world: World, carol: str) -> None:
    mine, *others = [sign_in(world) for _ in range(4)]
    stranger = sign_in(world, register(world, OTHER))
    assert revoke(mine, all_others=True).json() == {"success": True, "ended": 3}
    assert [each.is_alive for each in others] == [False] * 3
    assert {each.refresh().status_code for each in others} == {401}
    assert mine.is_alive
    assert stranger.is_alive
    assert mine.refresh().status_code == 200
    assert world.audit_actions()[-1] == "OTHER_SESSIONS_ENDED"


def test_nobody_ends_another_persons(world: World, carol: str) -> None:
    """P24: it is not there."""
    hers, stranger = sign_in(world), sign_in(world, register(world, OTHER))
    (name,) = [each["session_id"] for each in listed(hers)]
    assert revoke(stranger, session_id=name).status_code == 404
    assert hers.is_alive


@pytest.mark.parametrize("body", [{}, {"all_others": False}, {"session_id": "x", "all_others": True}])
def test_says_which_are_meant(world: World, carol: str, body: dict) -> None:
    session = sign_in(world)
    assert revoke(session, **body).status_code == 422
    assert session.is_alive


@pytest.mark.parametrize("text", ["a\r\nX: y", "a\x1b[2Jb", "a\u2028b", "a\u202eb", "x" * 201])
@pytest.mark.parametrize("field", ["device", "location"])
def test_what_a_client_says_of_itself_is_one_short_line(
    world: World, carol: str, field: str, text: str
) -> None:
    """P50: it is shown in lists and logs."""
    answer = world.http.post("/auth/login", json={"email": carol, "password": "wrong", field: text})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/{field}"


def test_a_change_that_waited_for_its_turn_is_refused_where_its_session_was_ended(
    world: World, carol: str, monkeypatch
) -> None:
    """Let in, then queued behind other writers for as long as ten seconds; meanwhile the owner throws the
    thief out.
    """
    owner, thief = sign_in(world), sign_in(world)
    sessions = world.platform.services.sessions
    authenticate = sessions.authenticate

    def queued(token: str, trace_id: str):
        caller = authenticate(token, trace_id)
        monkeypatch.undo()
        assert revoke(owner, all_others=True).status_code == 200
        return caller

    monkeypatch.setattr(sessions, "authenticate", queued)
    assert revoke(thief, all_others=True).status_code == 401
    assert owner.is_alive


ALICE = "alice@example.org"


@pytest.fixture
def alice(world: World) -> int:
    return world.organisation("Acme", ALICE).user_id


def refresh(world: World, sid: str, token: str) -> httpx.Response:
    world.http.cookies.clear()
    return world.http.post(
        "/auth/refresh", json={"sid": sid}, headers={"Cookie": f"{REFRESH_COOKIE}={token}"}
    )


def refresh_token(answer: httpx.Response) -> str:
    return answer.cookies[REFRESH_COOKIE]


def is_signed_in(world: World, access: str) -> bool:
    answer = world.http.get("/api/v1/get-user-info", headers={"Authorization": f"Bearer {access}"})
    return answer.status_code == 200


class TestRefresh:
    def test_rotates(self, world: World, alice: int) -> None:
        first = world.login(ALICE)
        sid = first.json()["sid"]
        second = refresh(world, sid, refresh_token(first))
        assert second.status_code == 200
        assert second.json()["sid"] == sid
        assert second.json()["expires_in"] == 900
        assert refresh_token(second) != refresh_token(first)
        assert is_signed_in(world, second.json()["token"])

    def test_a_client_killed_between_the_two_is_not_locked_out(self, world: World, alice: int) -> None:
        """The answer was lost: the old token is tried again, and again."""
        first = world.login(ALICE)
        sid = first.json()["sid"]
        for _ in range(3):
            lost = refresh(world, sid, refresh_token(first))
            assert lost.status_code == 200
        kept = refresh(world, sid, refresh_token(lost))
        assert kept.status_code == 200
        assert is_signed_in(world, kept.json()["token"])

    def test_reuse_after_the_successor_was_used_ends_the_family(self, world: World, alice: int) -> None:
        """P40."""
        first = world.login(ALICE)
        sid = first.json()["sid"]
        second = refresh(world, sid, refresh_token(first))
        third = refresh(world, sid, refresh_token(second))
        assert third.status_code == 200
        replayed = refresh(world, sid, refresh_token(first))
        assert replayed.status_code == 401
        assert replayed.json()["code"] == "UNAUTHENTICATED"
        assert refresh(world, sid, refresh_token(third)).status_code == 401
        assert not is_signed_in(world, third.json()["token"])
        assert world.audit_actions()[-1] == "REFRESH_TOKEN_REUSED"

    def test_a_thief_and_the_owner_cannot_both_go_on(self, world: World, alice: int) -> None:
        """P40: both hold a successor of the same token; the second to use one gives the theft away."""
        first = world.login(ALICE)
        sid = first.json()["sid"]
        thief = refresh(world, sid, refresh_token(first))
        owner = refresh(world, sid, refresh_token(first))
        assert refresh(world, sid, refresh_token(owner)).status_code == 200
        assert refresh(world, sid, refresh_token(thief)).status_code == 401
        assert not is_signed_in(world, owner.json()["token"])

    def test_another_session_lives_on(self, world: World, alice: int) -> None:
        stolen, other = world.login(ALICE), world.login(ALICE)
        sid = stolen.json()["sid"]
        refresh(world, sid, refresh_token(refresh(world, sid, refresh_token(stolen))))
        assert refresh(world, sid, refresh_token(stolen)).status_code == 401
        assert is_signed_in(world, other.json()["token"])
        assert refresh(world, other.json()["sid"], refresh_token(other)).status_code == 200

    def test_needs_its_own_sid(self, world: World, alice: int) -> None:
        first, other = world.login(ALICE), world.login(ALICE)
        assert refresh(world, other.json()["sid"], refresh_token(first)).status_code == 401
        assert refresh(world, first.json()["sid"], refresh_token(first)).status_code == 200

    def test_slides_for_thirty_days(self, world: World, alice: int) -> None:
        answer = world.login(ALICE)
        sid = answer.json()["sid"]
        for _ in range(3):
            world.clock.advance(days=29)
            answer = refresh(world, sid, refresh_token(answer))
            assert answer.status_code == 200
        world.clock.advance(days=30)
        assert refresh(world, sid, refresh_token(answer)).status_code == 401

    def test_without_a_cookie(self, world: World, alice: int) -> None:
        sid = world.login(ALICE).json()["sid"]
        world.http.cookies.clear()
        assert world.http.post("/auth/refresh", json={"sid": sid}).status_code == 401


class TestAccess:
    def test_ends_after_fifteen_minutes(self, world: World, alice: int) -> None:
        access = world.login(ALICE).json()["token"]
        world.clock.advance(minutes=14, seconds=59)
        assert is_signed_in(world, access)
        world.clock.advance(seconds=1)
        answer = world.http.get("/api/v1/get-user-info", headers={"Authorization": f"Bearer {access}"})
        assert answer.status_code == 401
        assert answer.json()["code"] == "TOKEN_EXPIRED"
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize(
        "header", [None, "Bearer ", "Bearer nonsense", "Basic YTpi", "Bearer " + "x" * 5000]
    )
    def test_refuses_what_is_no_token(self, world: World, header: str | None) -> None:
        headers = {} if header is None else {"Authorization": header}
        answer = world.http.get("/api/v1/get-user-info", headers=headers)
        assert answer.status_code == 401
        assert answer.json()["code"] == "UNAUTHENTICATED"

    def test_signing_out_ends_everything_of_the_session(self, world: World, alice: int) -> None:
        signed_in = world.login(ALICE)
        access, sid = signed_in.json()["token"], signed_in.json()["sid"]
        out = world.http.post("/auth/logout", headers={"Authorization": f"Bearer {access}"})
        assert out.json() == {"success": True}
        assert 'refresh_token=""' in out.headers["set-cookie"]
        assert not is_signed_in(world, access)
        assert refresh(world, sid, refresh_token(signed_in)).status_code == 401
