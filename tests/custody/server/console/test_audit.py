"""The audit log by the console: filters, pages, what follows what, the export."""

from sqlalchemy import update

from custody.schemas.call import PermissionName
from custody.server.console import audit
from custody.server.store.models import AuditEventRow, UserRow
from tests.support.custody import SHOP, ok
from tests.support.staff import add_someone


def test_the_newest_come_first_in_pages_and_follow_one_another(desk, browse, monkeypatch):
    monkeypatch.setattr(audit, "PAGE", 3)
    person = browse("admin").open(f"/console/w/{desk.workspace_id}/audit")
    seen = [cells[2] for cells in person.rows]
    assert "The rows of this page follow one another." in person.words
    while older := person.page.all("a") and [a for a in person.page.all("a") if a.words == "Older"]:
        person.open(older[0].attributes["href"])
        seen += [cells[2] for cells in person.rows]
    actions = desk.world.audit_actions(f"workspace:{desk.workspace_id}")
    assert all(action in row for action, row in zip(reversed(actions), seen, strict=True))
    with desk.store.write() as db:
        own = AuditEventRow.chain_id == f"workspace:{desk.workspace_id}"
        altered = update(AuditEventRow).where(own, AuditEventRow.position == len(actions) - 1)
        db.execute(altered.values(prev_hash=bytes(32)))
    person.open(f"/console/w/{desk.workspace_id}/audit")
    assert "do not follow one another" in person.words


def test_rows_are_sentences_by_names_and_may_be_of_one_person(desk, browse):
    desk.limit("0.2")
    desk.deposit(50_000_000)
    psbt_id = ok(desk.propose(10_000, description="Rent"))["psbt_id"]
    desk.enter("Landlord", SHOP)
    desk.decline("alice", psbt_id)
    with desk.store.write() as db:
        db.execute(update(UserRow).where(UserRow.email == "admin@example.org").values(first_name="<b>Ada"))
    person = browse("admin").open(f"/console/w/{desk.workspace_id}/audit")
    told = [cells[1] for cells in person.rows if "address book" not in cells[1]]
    assert told[0] == "alice@example.org declined the proposal Rent."
    assert told[1].startswith(
        "<b>Ada (admin@example.org) proposed the payment Rent from the vault Treasury "
        f"to Landlord, {SHOP[:8]}…{SHOP[-6:]}: 0.0001"
    )
    assert told[2].startswith(
        "<b>Ada (admin@example.org) changed the limit of the vault Treasury from 10 BTC in each payment"
    )
    person.open(person.link("Your own sessions"))
    assert "Sessions" in person.words
    alice = desk.user_ids["alice"]
    person.open(f"/console/w/{desk.workspace_id}/audit?user_uuid={alice}&from_day=2026-01-01")
    assert {cells[1].split()[0] for cells in person.rows} == {"alice@example.org"}
    assert ("user_uuid", str(alice)) in person.form(f"/console/w/{desk.workspace_id}/audit/export").fields


def test_titles_are_for_who_may_see_payments(desk, browse):
    """VIEW_LOGS alone shows what the log holds, and no title."""
    desk.deposit(50_000_000)
    ok(desk.propose(10_000, description="Rent"))
    add_someone(desk.world, "auditor", {PermissionName.VIEW_LOGS}, desk.workspace_id)
    person = browse("auditor").open(f"/console/w/{desk.workspace_id}/audit")
    assert "Treasury" in person.words
    assert "Rent" not in person.words
    assert f"{SHOP[:8]}…" not in person.words


def test_filters_are_kept_from_page_to_page_and_a_wrong_one_is_told(desk, browse):
    here = f"/console/w/{desk.workspace_id}/audit"
    person = browse("admin").open(f"{here}?category=VAULTS&from_day=2026-03-01&to_day=")
    assert {"VAULTS" in cells[2] for cells in person.rows} == {True}
    assert ("category", "VAULTS") in person.form(f"{here}/export").fields
    person.open(f"{here}?from_day=2026-03-02&to_day=2026-03-01", 422)
    (told,) = [tag.words for tag in person.page.tags if tag.attributes.get("class") == "problem"]
    assert told == "From is later than To: change one of them."
    assert person.page.by_id("from_day").attributes["value"] == "2026-03-02"
