"""Sessions: the tokens of a sign-in and their families, and a user's list of sessions."""

from dataclasses import replace

import pytest
from starlette.requests import Request

from custody.server.web import routes
from tests.support.accounts import Session, register, sign_in
from tests.support.custody import ok
from tests.support.platform import World

OTHER = "olga@example.org"


@pytest.fixture
def carol(world: World) -> str:
    return register(world)


def listed(session: Session) -> list[dict]:
    return ok(session.user.get("/auth/sessions"))


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


def test_another_persons_is_not_ended(world: World, carol: str) -> None:
    """P24: it is not there."""
    hers, stranger = sign_in(world), sign_in(world, register(world, OTHER))
    (name,) = [each["session_id"] for each in listed(hers)]
    assert revoke(stranger, session_id=name).status_code == 404
    assert hers.is_alive


def test_a_change_that_waited_for_its_turn_is_refused_where_its_session_was_ended(
    world: World, carol: str, monkeypatch
) -> None:
    """Let in, then queued behind other writers for as long as ten seconds; meanwhile the owner throws the
    thief out.
    """
    owner, thief = sign_in(world), sign_in(world)
    caller_of = routes._caller_of

    def queued(request: Request, token: str):
        caller = caller_of(request, token)
        monkeypatch.undo()
        assert revoke(owner, all_others=True).status_code == 200
        return caller

    monkeypatch.setattr(routes, "_caller_of", queued)
    assert revoke(thief, all_others=True).status_code == 401
    assert owner.is_alive


class TestRefresh:
    def test_a_client_killed_between_the_two_is_not_locked_out(self, world: World, carol: str) -> None:
        """The answer was lost: the old token is tried again, and again."""
        first = sign_in(world)
        lost = [first.after(first.refresh()) for _ in range(3)]
        assert lost[-1].after(lost[-1].refresh()).is_alive

    def test_reuse_after_the_successor_was_used_ends_the_family(self, world: World, carol: str) -> None:
        """P40. Another session lives on."""
        first, other = sign_in(world), sign_in(world)
        second = first.after(first.refresh())
        third = second.after(second.refresh())
        replayed = first.refresh()
        assert (replayed.status_code, replayed.json()["code"]) == (401, "UNAUTHENTICATED")
        assert third.refresh().status_code == 401
        assert not third.is_alive
        assert world.audit_actions()[-1] == "REFRESH_TOKEN_REUSED"
        assert other.is_alive
        assert other.refresh().status_code == 200

    def test_needs_its_own_sid_and_its_cookie(self, world: World, carol: str) -> None:
        first, other = sign_in(world), sign_in(world)
        assert replace(first, sid=other.sid).refresh().status_code == 401
        assert world.http.post("/auth/refresh", json={"sid": first.sid}).status_code == 401
        assert first.refresh().status_code == 200

    def test_slides_for_thirty_days(self, world: World, carol: str) -> None:
        session = sign_in(world)
        for _ in range(3):
            world.clock.advance(days=29)
            session = session.after(session.refresh())
        world.clock.advance(days=30)
        assert session.refresh().status_code == 401


class TestAccess:
    def test_ends_after_fifteen_minutes(self, world: World, carol: str) -> None:
        session = sign_in(world)
        world.clock.advance(minutes=14, seconds=59)
        assert session.is_alive
        world.clock.advance(seconds=1)
        answer = session.user.get("/api/v1/get-user-info")
        assert (answer.status_code, answer.json()["code"]) == (401, "TOKEN_EXPIRED")
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_refuses_what_is_no_token(self, world: World) -> None:
        for header in (None, "Bearer ", "Bearer nonsense", "Basic YTpi", "Bearer " + "x" * 5000):
            headers = {} if header is None else {"Authorization": header}
            answer = world.http.get("/api/v1/get-user-info", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED"), header

    def test_signing_out_ends_everything_of_the_session(self, world: World, carol: str) -> None:
        session = sign_in(world)
        out = session.user.post("/auth/logout")
        assert out.json() == {"success": True}
        assert 'refresh_token=""' in out.headers["set-cookie"]
        assert not session.is_alive
        assert session.refresh().status_code == 401
