"""Invitations through HTTP: who may offer what to whom, and whose answer counts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select

from custody.schemas.call import PermissionName
from custody.server.people import invitations as service
from custody.server.rules.roles import EVERY_PERMISSION
from custody.server.store.models import InvitationRow, MembershipRow, RolePermissionRow, UserRow
from tests.support import staff
from tests.support.accounts import register, sign_in
from tests.support.custody import ok
from tests.support.platform import PASSWORD, As, World, open_world
from tests.support.staff import add_role

ADMIN, MANAGER, GUEST = "alice@example.org", "manager@example.org", "guest@example.net"
EVE = "eve@example.com"
MANAGE_USERS = frozenset({PermissionName.MANAGE_USERS})
ADMINISTRATOR_ROLE, SIGNER_ROLE = 1, 2


@pytest.fixture
def guest(world: World, alice: As) -> As:
    return account(world, GUEST)


def account(world: World, email: str) -> As:
    """Registers and signs in, with the code that is mailed to the address."""
    return sign_in(world, register(world, email)).user


def invite(user: As, email: str = GUEST, **changes: object):
    return staff.invite(user, email, **changes)


def invited(user: As, email: str = GUEST, **changes: object) -> str:
    return ok(invite(user, email, **changes))["invite_id"]


def decide(user: As, invite_id: str, accept: str = "true"):
    return user.get("/api/v1/accept-invite", invite_id=invite_id, accept=accept)


def revoke(user: As, invite_id: str, workspace_id: int = 1):
    return user.post("/api/v1/revoke-invite", {"invite_id": invite_id, "workspace_id": workspace_id})


def pending(user: As, workspace_id: int = 1) -> list[dict]:
    return ok(user.get("/api/v1/get-pending-workspace-invites", workspace_id=workspace_id))


def own(user: As) -> list[dict]:
    return ok(user.get("/api/v1/get-invites-pending"))


def members(user: As) -> list[tuple[str, str]]:
    rows = user.get("/api/v1/get-users-from-workspace", workspace_id=1).json()
    return [(row["Email"], row["Role"]["Name"]) for row in rows]


def refused(answer, status: int, words: str) -> dict:
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
    return answer.json()


class TestTheWholeWay:
    def test_from_an_address_without_an_account_to_a_member(self, alice: As, world: World) -> None:
        """The address is the same in any case, and is told by mail."""
        invite_id = invited(alice, " Guest@Example.NET ")
        world.deliver_mail()
        (mail,) = world.mail.sent
        assert (mail.to, mail.subject) == (GUEST, "You are invited to Acme")
        assert f"accept or decline the invitation {invite_id};" in mail.text
        assert "ends on 08 March 2026, 12:00 UTC." in mail.text
        guest = account(world, GUEST)
        assert own(guest) == pending(alice)
        (offer,) = own(guest)
        shown = [offer[name] for name in ("InviteUID", "InvitedEmail", "RoleName", "Status", "ExpiresAt")]
        assert shown == [invite_id, GUEST, "Signer", "pending", "2026-03-08T12:00:00.000Z"]
        answer = decide(guest, invite_id)
        assert answer.status_code == 200, answer.text
        assert answer.json()["Status"] == "accepted"
        assert own(guest) == pending(alice) == []
        assert members(alice) == [(ADMIN, "Administrator"), (GUEST, "Signer")]
        assert guest.get("/api/v1/get-user-info").json()["DefaultWorkspace"] == 1
        assert world.audit_actions("workspace:1")[-2:] == ["INVITATION_SENT", "INVITATION_ACCEPTED"]


class TestTheAnswer:
    @pytest.mark.parametrize("accept", ["true", "false"])
    def test_of_another_account_does_not_count(self, alice: As, eve: As, world: World, accept: str) -> None:
        """P46. The address is not told, nor what became of it."""
        invite_id = invited(alice)
        told = refused(decide(eve, invite_id, accept), 403, "another address")
        assert told["code"] == "PERMISSION_DENIED"
        assert GUEST not in str(told)
        assert own(eve) == []
        assert [row["Status"] for row in pending(alice)] == ["pending"]
        assert world.audit_actions()[-1] == "PERMISSION_DENIED"
        revoke(alice, invite_id)
        assert decide(eve, invite_id, accept).json()["detail"] == told["detail"]

    @pytest.mark.parametrize(
        ("first", "words"),
        [("true", "accepted already"), ("false", "was declined"), ("revoke", "was revoked")],
    )
    def test_is_given_once(self, alice: As, guest: As, world: World, first: str, words: str) -> None:
        """P46."""
        invite_id = invited(alice)
        ok(revoke(alice, invite_id) if first == "revoke" else decide(guest, invite_id, first))
        assert own(guest) == pending(alice) == []
        for again in (decide(guest, invite_id), decide(guest, invite_id, "false"), revoke(alice, invite_id)):
            refused(again, 409, words)
        assert len(members(alice)) == (2 if first == "true" else 1)
        assert world.audit_actions("workspace:1")[-1].removeprefix("INVITATION_").lower() in words

    def test_is_given_once_in_a_race(self, alice: As, guest: As) -> None:
        """P46, with real parallel clients."""
        invite_id = invited(alice)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: decide(guest, invite_id).status_code, range(4)))
        assert sorted(answers) == [200, 409, 409, 409]
        assert len(members(alice)) == 2

    def test_of_an_account_that_became_a_member_meanwhile(self, alice: As, guest: As, world: World) -> None:
        invite_id = invited(alice)
        world.member(1, GUEST)
        refused(decide(guest, invite_id), 409, "member of this workspace already")
        assert decide(guest, invite_id, "false").status_code == 200


def test_an_invitation_ends_after_a_week_and_the_worker_writes_it_down(alice: As, world: World) -> None:
    invite_id = invited(alice)
    world.clock.advance(days=7)
    guest, alice = account(world, GUEST), world.as_user(ADMIN)
    assert own(guest) == pending(alice) == []
    refused(decide(guest, invite_id), 409, "has expired")
    refused(revoke(alice, invite_id), 409, "has expired")
    invited(alice, "other@example.net")
    expiry = world.platform.background.expiry()
    assert expiry() >= 1
    expiry()
    with world.platform.services.store.read() as db:
        marked = db.get_one(InvitationRow, invite_id)
        assert (marked.status, marked.decided_at) == ("expired", marked.expires_at)
    assert world.audit_actions("workspace:1").count("INVITATION_EXPIRED") == 1
    assert [row["InvitedEmail"] for row in pending(alice)] == ["other@example.net"]


def test_an_address_is_invited_once_at_a_time_and_no_member_is(alice: As, world: World) -> None:
    for email in (ADMIN, ADMIN.upper()):
        refused(invite(alice, email), 409, "member of this workspace already")
    first = invited(alice)
    refused(invite(alice, role_id=ADMINISTRATOR_ROLE), 409, first)
    world.clock.advance(days=7)
    second = invited(world.as_user(ADMIN))
    assert world.audit_actions("workspace:1")[-2:] == ["INVITATION_EXPIRED", "INVITATION_SENT"]
    revoke(world.as_user(ADMIN), second)
    assert invite(world.as_user(ADMIN)).status_code == 200


class TestEscalation:
    """P26."""

    @pytest.fixture
    def manager(self, alice: As, world: World) -> As:
        """May manage users and nothing else, by role 3."""
        add_role(world, "Manager", MANAGE_USERS)
        world.member(1, MANAGER, "Manager")
        return world.as_user(MANAGER)

    def test_inviting_to_more_than_one_has_is_refused(self, manager: As) -> None:
        told = refused(invite(manager, role_id=ADMINISTRATOR_ROLE), 403, "cannot grant what you do not hold")
        assert "MANAGE_ROLE" in told["detail"]
        refused(invite(manager, role_id=SIGNER_ROLE), 403, "PAYMENT_APPROVE")
        assert invite(manager, role_id=3).status_code == 200

    def test_a_role_that_gained_since_is_not_given(self, manager: As, guest: As, world: World) -> None:
        usher = add_role(world, "Usher", MANAGE_USERS)
        invite_id = invited(manager, role_id=usher)
        with world.platform.services.store.write() as db:
            db.add(RolePermissionRow(role_id=usher, permission="MANAGE_ROLE"))
        refused(decide(guest, invite_id), 409, "may no longer grant this role")
        assert len(own(guest)) == 1
        assert decide(guest, invite_id, "false").status_code == 200

    @pytest.mark.parametrize("loss", ["membership", "permission", "role"])
    def test_an_inviter_who_lost_theirs_gives_nothing(
        self, alice: As, guest: As, world: World, loss: str
    ) -> None:
        """A removed or demoted member's invitations count for no more than they may give now."""
        world.member(1, MANAGER, "Administrator")
        invite_id = invited(world.as_user(MANAGER), role_id=ADMINISTRATOR_ROLE)
        every_other = add_role(world, "Other", EVERY_PERMISSION - MANAGE_USERS)
        with world.platform.services.store.write() as db:
            inviter = db.scalars(select(UserRow.id).where(UserRow.email == MANAGER)).one()
            held = db.scalars(select(MembershipRow).where(MembershipRow.user_id == inviter)).one()
            if loss == "membership":
                db.delete(held)
            else:
                held.role_id = {"role": SIGNER_ROLE, "permission": every_other}[loss]
        refused(decide(guest, invite_id), 409, "may no longer grant this role")
        assert (GUEST, "Administrator") not in members(alice)


class TestBounds:
    def test_on_open_invitations(self, alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
        assert service.MAX_PENDING_IN_WORKSPACE == 100
        monkeypatch.setattr(service, "MAX_PENDING_IN_WORKSPACE", 2)
        first = invited(alice, "1@example.net")
        invited(alice, "2@example.net")
        refused(invite(alice, "3@example.net"), 409, "2 invitations to this workspace are open")
        revoke(alice, first)
        assert invite(alice, "3@example.net").status_code == 200

    def test_on_mails_to_one_address(self, alice: As, eve: As, world: World) -> None:
        """Revoking and inviting again does not fill a mailbox."""
        for _ in range(5):
            revoke(alice, invited(alice))
        told = invite(alice)
        assert refused(told, 429, GUEST)["code"] == "RATE_LIMITED"
        assert int(told.headers["Retry-After"]) == 24 * 3600
        assert invite(alice, "other@example.net").status_code == 200
        assert invite(eve, workspace_context=2, org_id=2, role_id=4).status_code == 200
        world.clock.advance(days=1)
        assert invite(world.as_user(ADMIN)).status_code == 200

    def test_on_mails_of_one_organisation(
        self, alice: As, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert service.ORGANISATION_RATE[0] == 100
        monkeypatch.setattr(service, "ORGANISATION_RATE", (2, service.ORGANISATION_RATE[1]))
        invited(alice, "1@example.net")
        world.clock.advance(minutes=10)
        revoke(alice, invited(alice, "2@example.net"))
        told = invite(alice, "3@example.net")
        refused(told, 429, "your organisation")
        assert int(told.headers["Retry-After"]) == 50 * 60


def test_where_registration_is_closed_an_invited_address_alone_gets_an_account(
    database: str, tmp_path: Path
) -> None:
    """The answers are the same (P39): each mailbox learns the rest."""
    (folder := tmp_path / "closed").mkdir()
    with open_world(folder, database_url=database, registration="invited") as world:
        world.organisation("Acme", ADMIN)
        invited(world.as_user(ADMIN))
        answers = [
            world.http.post("/auth/register", json={"email": email, "password": PASSWORD})
            for email in (GUEST, EVE, ADMIN)
        ]
        assert len({(answer.status_code, answer.content) for answer in answers}) == 1
        assert world.login(GUEST).json()["requires_2FA"] is True
        assert world.login(EVE).status_code == 401
        world.deliver_mail()
        told = {mail.to: mail.subject for mail in world.mail.sent if "account" in mail.subject}
        assert told == {
            GUEST: "Your custody account",
            EVE: "No account was made",
            ADMIN: "You already have an account",
        }
        assert "REGISTRATION_REFUSED" in world.audit_actions()
