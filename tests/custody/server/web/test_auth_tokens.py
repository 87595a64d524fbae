"""What a sign-in hands out: refresh families, access tokens, and their end."""

import httpx
import pytest

from custody.schemas.auth import REFRESH_COOKIE
from tests.support.platform import World

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
