"""Requests for organisations through HTTP: who asks, who decides, and what comes of it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from custody.server.people import organisations as rules
from custody.server.store.models import UserRow
from tests.support.custody import ok
from tests.support.onboarding import REQUEST
from tests.support.platform import As, World

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
    world.member(1, email)
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


class TestApproval:
    def test_founds_the_organisation_with_the_requester_as_administrator(
        self, operator: As, asker: As, world: World
    ) -> None:
        """The account is told, and not the claimed address; the operator has no place in it."""
        uid = asked(asker, referral_source_detail="over lunch")
        (stored,) = ok(asker.get(PATH))
        assert stored.items() >= REQUEST.items()
        assert (stored["status"], stored["referral_source_detail"]["String"]) == ("pending", "over lunch")
        told = ok(review(operator, uid, {**APPROVE, "review_note": "Welcome.\nClick here"}))
        assert (told["status"], told["was_created"]) == ("approved", True)
        assert told["approved_by_email"] == {"String": OPERATOR, "Valid": True}
        assert told["created_org_uid"] == {"Int64": 2, "Valid": True}
        assert asker.get(PATH).json() == [told]
        organisations = asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]
        assert [each["OrgName"] for each in organisations] == ["Platform", "Prado & Filhas"]
        (entry,) = organisations[1]["Workspaces"]["Workspaces"]
        assert (entry["WorkspaceInfo"]["name"], entry["Role"]["Name"]) == ("Treasury", "Administrator")
        rows = asker.get("/api/v1/get-users-from-workspace", workspace_id=2).json()
        assert [row["UUID"] for row in rows] == [2]
        world.deliver_mail()
        (mail,) = world.mail.sent
        assert (mail.to, mail.subject) == (ASKER, "Your organisation is ready")
        assert "Note of the reviewer: Welcome. Click here\n" in mail.text


def test_a_rejection_founds_nothing_is_told_and_final(operator: As, asker: As, world: World) -> None:
    uid = asked(asker)
    told = review(operator, uid, REJECT).json()
    assert (told["status"], told["was_created"]) == ("rejected", False)
    again = review(operator, uid)
    assert (again.status_code, "was rejected already" in again.json()["detail"]) == (409, True)
    assert len(asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]) == 1
    world.deliver_mail()
    (mail,) = world.mail.sent
    assert (mail.subject, "none was given" in mail.text) == ("Your request was not approved", True)


def test_operators_see_and_decide_all_and_anybody_else_sees_their_own(
    operator: As, asker: As, world: World
) -> None:
    """P23, P24: what is there cannot be told from what is not."""
    eve = account(world, EVE)
    first, second = asked(asker), asked(eve)
    assert (listed(asker), listed(eve), listed(operator)) == ([first], [second], [first, second])
    own, none = review(asker, first), review(asker, 999)
    assert own.status_code == none.status_code == 403
    assert own.json()["detail"] == none.json()["detail"]
    assert review(operator, 999).status_code == 404
    page = operator.get(PATH, limit=1, status="pending")
    rest = operator.http.get(page.links["next"]["url"], headers=operator.headers)
    assert (page.headers["X-Total-Count"], [row["uid"] for row in rest.json()]) == ("2", [second])
    review(operator, first, REJECT)
    assert (listed(operator, status="rejected"), listed(eve, status="pending")) == ([first], [second])
    with world.platform.services.store.write() as db:
        db.execute(update(UserRow).values(is_operator=False))
    assert (review(operator, second).status_code, listed(operator)) == (403, [])


def test_requests_are_bounded(operator: As, asker: As, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    uids = [asked(asker) for _ in range(rules.MAX_PENDING_OF_ACCOUNT)]
    full = ask(asker)
    assert (full.status_code, "3 requests of yours wait" in full.json()["detail"]) == (409, True)
    review(operator, uids[0], REJECT)
    monkeypatch.setattr(rules, "REQUESTS_PER_WINDOW", 3)
    refused = ask(asker)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "86400")
    world.clock.advance(days=1)
    assert ask(world.as_user(ASKER)).status_code == 200


def test_a_decision_is_made_once_in_a_race(operator: As, asker: As) -> None:
    uid = asked(asker)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: review(operator, uid).status_code, range(4)))
    assert sorted(answers) == [200, 409, 409, 409]
    assert len(asker.get("/api/v1/get-user-info").json()["OrganisationsInfo"]["Organisations"]) == 2
