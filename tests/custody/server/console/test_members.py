"""Members by the console: invited, given another role, removed; the last administrator stays."""

import pytest
from sqlalchemy import update

from custody.server.store.models import UserRow
from tests.support.custody import ok


@pytest.fixture
def here(desk):
    return f"/console/w/{desk.workspace_id}/members"


@pytest.fixture
def role_ids(desk):
    """By name."""
    roles = ok(desk.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=desk.workspace_id))
    return {role["Name"]: str(role["RoleId"]) for role in roles}


def test_the_list_shows_role_key_and_last_sign_in(desk, browse, here):
    person = browse("admin").open(here)
    assert ["alice@example.org", "Signer", "active", "1 Mar 2026, 12:00 UTC"] in person.rows
    assert "admin@example.org you" in person.rows[0]


def test_an_address_that_looks_like_another_ones_shows_what_it_hides(desk, browse, here):
    desk.world.member(desk.workspace_id, "mallory@example.org")
    with desk.world.platform.services.store.write() as db:
        db.execute(
            update(UserRow)
            .where(UserRow.email == "mallory@example.org")
            .values(email="al\u200bice@example.org")
        )
    person = browse("admin").open(here)
    assert [row[0] for row in person.rows if row[0].startswith("al")] == [
        "alice@example.org",
        "al·ice@example.org",
    ]


def test_an_invitation_is_shown_back_sent_and_taken_back(desk, browse, here, role_ids):
    person = browse("admin").open(here)
    # Without a choice it is the role with the fewest permissions.
    assert person.page.by_id("invited-role").words.startswith("Signer")
    person.send(f"{here}/invite", invited_email="new@example.org", role_id=role_ids["Signer"])
    assert "new@example.org" in person.words
    assert set(person.facts["What it may do"].split("; ")) == {
        "Approve payments as a signer, freeze and unfreeze vaults",
        "See balances and payments",
    }
    assert ok(desk.admin.get("/api/v1/get-pending-workspace-invites", workspace_id=desk.workspace_id)) == []
    person.confirm(f"{here}/invite")
    assert ("new@example.org", person.url) == (person.page.all("th", scope="row")[-1].words, here)
    person.send(f"{here}/revoke")
    assert "new@example.org" not in person.words


def test_a_role_is_changed_and_a_member_removed(desk, browse, here, role_ids):
    carol = f"{here}/{desk.user_ids['carol']}"
    person = browse("admin").open(carol)
    person.send(f"{carol}/role", role_id=role_ids["Administrator"])
    assert (person.facts["Current role"], person.facts["Role"]) == ("Signer", "Administrator")
    person.confirm(f"{carol}/role")
    assert ["carol@example.org", "Administrator"] in [cells[:2] for cells in person.rows]
    person.open(carol).send(f"{carol}/remove").confirm(f"{carol}/remove")
    assert "carol@example.org" not in person.words
    bob = f"{here}/{desk.user_ids['bob']}"
    person.open(bob).send(f"{bob}/remove").confirm(f"{bob}/remove", status=409)
    assert "Treasury" in person.page.all("div", role="alert")[0].words
    person.send(f"{bob}/remove", force="yes").confirm(f"{bob}/remove")
    assert "bob@example.org" not in person.words


def test_the_last_administrator_is_told_why_they_stay(browse, desk, here, role_ids):
    leave = f"/console/w/{desk.workspace_id}/leave"
    person = browse("admin").open(leave).send(leave).confirm(leave, status=409)
    assert "make another member administrator first" in person.words
    person.page.all("div", **{"data-code": "LAST_ADMIN"})[0]


def test_a_member_without_any_right_over_members_leaves(browse, desk):
    person = browse("carol").open(f"/console/w/{desk.workspace_id}/")
    leave = person.link("Leave this workspace")
    person.open(leave).send(leave, force="yes").confirm(leave)
    assert "You are in no workspace yet." in person.words


def test_a_colleague_of_another_workspace_is_added(desk, browse, here, role_ids):
    place = f"/console/w/{desk.workspace_id}/workspace"
    person = browse("admin").open(place)
    person.send(f"{place}/new", new_name="Second", network="testnet").confirm(f"{place}/new")
    other = person.url.rstrip("/")
    person.open(f"{other}/members").send(f"{other}/members/add", user_uuid=str(desk.user_ids["alice"]))
    person.confirm(f"{other}/members/add")
    assert "alice@example.org" in person.page.all("table")[0].words
