"""Members by the console: invited, given another role, removed; the last administrator stays."""

from sqlalchemy import update

from custody.schemas.call import PermissionName
from custody.server.store.models import KeyRow, UserRow
from tests.support.staff import add_someone


def test_the_list_shows_what_an_address_that_looks_like_another_one_hides(desk, browse, here):
    desk.world.member(desk.workspace_id, "mallory@example.org")
    mallory = update(UserRow).where(UserRow.email == "mallory@example.org")
    with desk.store.write() as db:
        db.execute(mallory.values(email="al\u200bice@example.org"))
    person = browse("admin").open(f"{here}/members")
    assert ["alice@example.org", "Signer", "active", "1 Mar 2026, 12:00 UTC"] in person.rows
    assert "admin@example.org you" in person.rows[0]
    assert "al·ice@example.org" in [row[0] for row in person.rows]


def test_who_reads_the_log_sees_the_roles_and_not_the_members(desk, browse, here):
    add_someone(desk.world, "auditor", {PermissionName.VIEW_LOGS}, desk.workspace_id)
    person = browse("auditor")
    person.open(f"{here}/members", 403)
    assert "Signer" in person.open(f"{here}/roles").words


def test_who_is_needed_by_a_vault_is_removed_where_it_is_forced(desk, browse, here):
    bob = f"{here}/members/{desk.user_ids['bob']}"
    with desk.store.write() as db:
        carol = KeyRow.user_id == desk.user_ids["carol"]
        db.execute(update(KeyRow).where(carol).values(status="revoked", revoked_reason="lost"))
    person = browse("admin").open(bob).send(f"{bob}/remove", status=409)
    refusal = person.page.all("div", role="alert")[0].words
    assert "Treasury" in refusal
    assert refusal.strip().endswith("or force it.")
    person.send(f"{bob}/remove", force="yes").confirm(f"{bob}/remove")
    assert "bob@example.org" not in person.words


def test_a_member_leaves_without_any_right_over_members_and_the_last_administrator_does_not(browse, here):
    leave = f"{here}/leave"
    person = browse("admin").open(leave).send(leave, status=409)
    assert person.page.all("div", **{"data-code": "LAST_ADMIN"})
    person = browse("carol").open(f"{here}/")
    person.open(person.link("Leave this workspace")).send(leave, force="yes").confirm(leave)
    assert "You are in no workspace yet." in person.words


def test_a_colleague_of_another_workspace_is_added(desk, browse, here):
    place = f"{here}/workspace"
    person = browse("admin").open(place)
    person.send(f"{place}/new", new_name="Second", network="testnet").confirm(f"{place}/new")
    other = person.url.rstrip("/")
    person.open(f"{other}/members").send(f"{other}/members/add", user_uuid=str(desk.user_ids["alice"]))
    person.confirm(f"{other}/members/add")
    assert "alice@example.org" in person.page.all("table")[0].words
