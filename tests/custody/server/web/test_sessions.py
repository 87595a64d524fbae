"""Sessions: the tokens of a sign-in and their families, and a user's list of sessions."""

from dataclasses import replace

from sqlalchemy import select
from starlette.requests import Request

from custody.server.store.models import AccessTokenRow
from custody.server.store.store import PageSnapshot
from custody.server.web import routes
from tests.support.accounts import Session, register, sign_in
from tests.support.custody import ok, refused
from tests.support.platform import World

OTHER = "olga@example.org"


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
    unknown = {"String": "", "Valid": False}
    times = dict.fromkeys(("created_at", "last_used_at"), "2026-03-01T12:05:00.000Z")
    assert first == {
        "session_id": first["session_id"],
        "device": unknown,
        "location": unknown,
        "current": True,
        **times,
    }
    assert (second["device"]["String"], second["location"]["String"]) == ("desk", "Riga")
    assert [each["current"] for each in listed(desk)] == [False, True]
    # P49: beside its cookie, ``sid`` renews a session; the list names it otherwise.
    assert phone.sid not in str(first)
    assert replace(phone, sid=first["session_id"]).refresh().status_code == 401
    world.clock.advance(days=30)
    assert len(listed(sign_in(world))) == 1, "none that cannot be renewed any more"


def test_ending_one_or_all_others_kills_their_tokens_at_once(world: World, carol: str) -> None:
    """P24: another person's is not there."""
    mine, lost, *others = [sign_in(world) for _ in range(4)]
    stranger = sign_in(world, register(world, OTHER))
    name = next(each["session_id"] for each in listed(lost) if each["current"])
    assert revoke(stranger, session_id=name).status_code == 404
    assert revoke(mine, session_id=name).json() == {"success": True, "ended": 1}
    assert revoke(mine, session_id=name).status_code == 404
    assert world.audit_actions()[-1] == "SESSION_ENDED"
    assert [each.is_alive for each in (lost, *others)] == [False, True, True]
    assert revoke(mine, all_others=True).json() == {"success": True, "ended": 2}
    assert world.audit_actions()[-1] == "OTHER_SESSIONS_ENDED"
    assert [each.is_alive for each in (lost, *others, mine, stranger)] == [False] * 3 + [True] * 2
    assert {each.refresh().status_code for each in (lost, *others)} == {401}
    assert mine.refresh().status_code == 200


def test_a_change_that_waited_for_its_turn_is_refused_where_its_session_was_ended(
    world: World, carol: str, monkeypatch
) -> None:
    """Let in, then queued behind other writers for as long as ten seconds; meanwhile the owner throws the
    thief out.
    """
    owner, thief = sign_in(world), sign_in(world)
    caller_of = routes._caller_of

    def queued(request: Request, snapshot: PageSnapshot):
        caller = caller_of(request, snapshot)
        snapshot.end()
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
        refused(first.refresh(), 401, "UNAUTHENTICATED")
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
        with world.platform.services.store.read() as db:
            assert len(db.scalars(select(AccessTokenRow)).all()) == 1, "what has ended is not kept"
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

    def test_signing_out_ends_everything_of_the_session(self, world: World, carol: str) -> None:
        session = sign_in(world)
        out = session.user.post("/auth/logout")
        assert out.json() == {"success": True}
        assert 'refresh_token=""' in out.headers["set-cookie"]
        assert not session.is_alive
        assert session.refresh().status_code == 401
