"""One's own sessions: which there are, and ending them."""

import pytest

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
    """Let in, then queued behind other writers for as long as ten seconds; meanwhile the owner throws the thief out."""
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
