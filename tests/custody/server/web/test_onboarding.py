"""Requests for organisations through HTTP: who asks, who decides, and what comes of it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from custody.server import onboarding as rules
from custody.server.service.people.setup import NewPerson
from custody.server.store.models import UserRow
from multisig import Network
from tests.support.custody import ok
from tests.support.onboarding import REQUEST
from tests.support.platform import PASSWORD, As, World

PATH = "/api/v1/onboarding-requests"
OPERATOR, ASKER, EVE = "operator@example.org", "asker@example.net", "eve@example.com"
# What the tests of refusals send: the shortest that a review can be.
APPROVE, REJECT = {"decision": "approve"}, {"decision": "reject"}


@pytest.fixture
def operator(world: World) -> As:
    """User 1: administers an organisation of the platform's own, which opened testnet, and reviews
    requests.
    """
    world.organisation("Platform", OPERATOR)
    with world.platform.services.store.write() as db:
        db.execute(update(UserRow).where(UserRow.email == OPERATOR).values(is_operator=True))
    return world.as_user(OPERATOR)


def account(world: World, email: str) -> As:
    """A member of the platform's own organisation without any power there, who signs in with a password
    alone.
    """
    world.platform.setup.add_member(
        workspace_id=1, role="Signer", person=NewPerson(email, PASSWORD, two_factor=False)
    )
    return world.as_user(email)


@pytest.fixture
def asker(world: World, operator: As) -> As:
    """User 2."""
    return account(world, ASKER)


def ask(user: As, **changes: object):
    return user.post(PATH, {**REQUEST, **changes})


def asked(user: As, **changes: object) -> int:
    return ok(ask(user, **changes))["uid"]


def review(user: As, uid: object, body: dict = APPROVE):
    return user.post(f"{PATH}/{uid}/review", body)


def listed(user: As, **query: object) -> list[int]:
    answer = user.get(PATH, **query)
    assert answer.status_code == 200, answer.text
    return [row["uid"] for row in answer.json()]


def test_a_request_is_stored_as_it_was_sent(asker: As, world: World) -> None:
    answer = ask(asker, referral_source_detail="over lunch")
    absent = {"String": "", "Valid": False}
    assert answer.json() == {
        **REQUEST,
        "uid": 1,
        "requester_uuid": 2,
        "requester_email": ASKER,
        "referral_source_detail": {"String": "over lunch", "Valid": True},
        "network": "testnet",
        "status": "pending",
        "review_note": absent,
        "approved_by_email": absent,
        "approved_at": {"Time": "1970-01-01T00:00:00.000Z", "Valid": False},
        "was_created": False,
        "created_org_uid": {"Int64": 0, "Valid": False},
        "submitted_at": "2026-03-01T12:00:00.000Z",
        "updated_at": "2026-03-01T12:00:00.000Z",
    }
    assert asker.get(PATH).json() == [answer.json()]
    assert world.audit_actions()[-1] == "ONBOARDING_REQUESTED"


def test_a_request_has_a_shape(asker: As) -> None:
    """P50; nor can it decide about itself."""
    for field, value in (
        ("monthly_volume", "a lot"),
        ("monthly_volume", 5),
        ("network", "regtest"),
        ("org_name", ""),
        ("org_name", "a\nb"),
        ("workspace_name", "x" * 101),
        ("work_email", "nobody"),
        ("messaging_handle", "\u202e"),
        ("status", "approved"),
        ("requester_uuid", 1),
        ("referral_source_detail", "x" * 1001),
    ):
        answer = ask(asker, **{field: value})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{field}"), value


class TestApproval:
    def test_founds_the_organisation_with_the_requester_as_administrator(
        self, operator: As, asker: As, world: World
    ) -> None:
        answer = review(operator, asked(asker), {**APPROVE, "review_note": "Welcome."})
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["status"], told["was_created"]) == ("approved", True)
        assert told["review_note"]["String"] == "Welcome."
        assert told["approved_by_email"] == {"String": OPERATOR, "Valid": True}
        assert told["approved_at"] == {"Time": "2026-03-01T12:00:00.000Z", "Valid": True}
        assert told["created_org_uid"] == {"Int64": 2, "Valid": True}
        assert asker.get(PATH).json() == [told]
        organisations = asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]
        assert [each["OrgName"] for each in organisations] == ["Platform", "Prado & Filhas"]
        (entry,) = organisations[1]["Workspaces"]["Workspaces"]
        assert (entry["WorkspaceInfo"]["name"], entry["Role"]["Name"]) == ("Treasury", "Administrator")
        rows = asker.get("/api/v1/get-users-from-workspace", workspace_id=2).json()
        assert [row["UUID"] for row in rows] == [2], "the operator has no place in it"
        assert world.audit_actions()[-1] == "ONBOARDING_APPROVED"
        assert world.audit_actions("organisation:2") == ["ORGANISATION_CREATED"]
        assert world.audit_actions("workspace:2") == ["WORKSPACE_CREATED"]

    def test_is_told_to_the_account_and_not_to_the_claimed_address(
        self, operator: As, asker: As, world: World
    ) -> None:
        review(operator, asked(asker), {**APPROVE, "review_note": "Welcome.\nClick here"})
        world.deliver_mail()
        (mail,) = world.mail.sent
        assert (mail.to, mail.subject) == (ASKER, "Your organisation is ready")
        assert "Prado & Filhas exists" in mail.text
        assert "Note of the reviewer: Welcome. Click here\n" in mail.text

    def test_of_mainnet_needs_no_other_workspace(self, operator: As, asker: As) -> None:
        review(operator, asked(asker, network="mainnet"))
        organisations = asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]
        assert organisations[1]["Workspaces"]["Workspaces"][0]["WorkspaceInfo"]["net"] == "mainnet"

    def test_of_a_network_that_is_not_open_changes_nothing(self, world: World) -> None:
        world.platform.setup.bootstrap(
            organisation="Platform",
            workspace="Main",
            chain=Network.MAINNET,
            person=NewPerson(OPERATOR, PASSWORD, two_factor=False),
        )
        with world.platform.services.store.write() as db:
            db.execute(update(UserRow).values(is_operator=True))
        operator = world.as_user(OPERATOR)
        uid = asked(operator)
        refused = review(operator, uid)
        assert refused.status_code == 409
        assert "custody admin bootstrap" in refused.json()["detail"]
        assert operator.get(PATH).json()[0]["status"] == "pending"
        assert len(operator.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]) == 1


class TestRejection:
    def test_founds_nothing_and_is_told(self, operator: As, asker: As, world: World) -> None:
        told = review(operator, asked(asker), REJECT).json()
        assert (told["status"], told["was_created"]) == ("rejected", False)
        assert told["approved_by_email"]["Valid"] is told["approved_at"]["Valid"] is False
        assert len(asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]) == 1
        world.deliver_mail()
        (mail,) = world.mail.sent
        assert mail.subject == "Your request was not approved"
        assert "none was given" in mail.text
        assert world.audit_actions()[-1] == "ONBOARDING_REJECTED"


class TestADecision:
    @pytest.mark.parametrize("first", [APPROVE, REJECT])
    @pytest.mark.parametrize("second", [APPROVE, REJECT])
    def test_is_made_once(self, operator: As, asker: As, first: dict, second: dict) -> None:
        uid = asked(asker)
        decided = review(operator, uid, first).json()
        again = review(operator, uid, second)
        assert again.status_code == 409
        assert f"was {decided['status']} already" in again.json()["detail"]
        assert operator.get(PATH).json() == [decided]

    def test_is_made_once_in_a_race(self, operator: As, asker: As, world: World) -> None:
        uid = asked(asker)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: review(operator, uid).status_code, range(4)))
        assert sorted(answers) == [200, 409, 409, 409]
        assert len(asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]) == 2

    def test_has_a_shape_and_is_about_a_number(self, operator: As, asker: As) -> None:
        """P21, P50."""
        uid = asked(asker)
        for body in ({}, {"decision": "maybe"}, {**APPROVE, "review_note": "x" * 1001}):
            assert review(operator, uid, body).status_code == 422
        for number in ("0", "-1", "x", "1e3", "9223372036854775808"):
            answer = review(operator, number)
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/uid")


class TestWho:
    def test_only_an_operator_decides(self, asker: As, world: World) -> None:
        """Not even about one's own; and what is there cannot be told from what is not."""
        own, none = review(asker, asked(asker)), review(asker, 999)
        assert own.status_code == none.status_code == 403
        assert own.json()["code"] == none.json()["code"] == "PERMISSION_DENIED"
        assert own.json()["detail"] == none.json()["detail"]
        assert asker.get(PATH).json()[0]["status"] == "pending"
        assert world.audit_actions()[-1] == "PERMISSION_DENIED"

    def test_an_operator_who_is_none_any_more_decides_nothing(
        self, operator: As, asker: As, world: World
    ) -> None:
        """P23: asked on every call."""
        uid = asked(asker)
        with world.platform.services.store.write() as db:
            db.execute(update(UserRow).values(is_operator=False))
        assert review(operator, uid).status_code == 403
        assert listed(operator) == []

    def test_an_operator_sees_everybodys_and_anybody_else_their_own(
        self, operator: As, asker: As, world: World
    ) -> None:
        """P24."""
        eve = account(world, EVE)
        first, second = asked(asker), asked(eve)
        assert (listed(asker), listed(eve), listed(operator)) == ([first], [second], [first, second])

    def test_an_operator_gets_404_for_what_is_not_there(self, operator: As) -> None:
        assert review(operator, 999).status_code == 404


class TestTheList:
    def test_comes_in_pages(self, operator: As, asker: As) -> None:
        uids = [asked(asker, org_name=f"Org {number}") for number in range(3)]
        first = operator.get(PATH, limit=2, status="pending")
        assert [row["uid"] for row in first.json()] == uids[:2]
        assert first.headers["X-Total-Count"] == "3"
        rest = operator.http.get(first.links["next"]["url"], headers=operator.headers)
        assert [row["uid"] for row in rest.json()] == uids[2:]
        assert "next" not in rest.links

    def test_is_filtered_by_status(self, operator: As, asker: As) -> None:
        first, second = asked(asker), asked(asker, org_name="Another")
        review(operator, first, REJECT)
        for user in (operator, asker):
            assert listed(user, status="rejected") == [first]
            assert listed(user, status="pending") == [second]
            assert listed(user, status="approved") == []

    def test_takes_nothing_else(self, operator: As) -> None:
        for query in ({"status": "open"}, {"limit": 501}, {"limit": 0}, {"after": "x"}):
            assert operator.get(PATH, **query).status_code == 422


class TestBounds:
    def test_on_requests_that_wait(self, operator: As, asker: As) -> None:
        uids = [asked(asker) for _ in range(rules.MAX_PENDING_OF_ACCOUNT)]
        full = ask(asker)
        assert full.status_code == 409
        assert "3 requests of yours wait" in full.json()["detail"]
        review(operator, uids[0], REJECT)
        assert ask(asker).status_code == 200

    def test_on_requests_of_a_day(
        self, operator: As, asker: As, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert rules.REQUESTS_PER_WINDOW == 10
        monkeypatch.setattr(rules, "REQUESTS_PER_WINDOW", 2)
        for _ in range(2):
            review(operator, asked(asker), REJECT)
        refused = ask(asker)
        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "86400"
        world.clock.advance(days=1)
        assert ask(world.as_user(ASKER)).status_code == 200
