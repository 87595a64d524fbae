"""The audit log by the console: filters, pages, what follows what, the export."""

from sqlalchemy import update

from custody.server.console import audit
from custody.server.domain.export import read_csv
from custody.server.store.models import AuditEvent
from tests.support.console import SAME_SITE


def test_the_newest_come_first_in_pages_and_follow_one_another(desk, browse, monkeypatch):
    monkeypatch.setattr(audit, "PAGE", 3)
    person = browse("admin").open(f"/console/w/{desk.workspace_id}/audit")
    seen = [cells[2] for cells in person.rows]
    assert "The rows of this page follow one another." in person.words
    while older := person.page.all("a") and [a for a in person.page.all("a") if a.words == "Older"]:
        person.open(older[0].attributes["href"])
        seen += [cells[2] for cells in person.rows]
    actions = desk.world.audit_actions(f"workspace:{desk.workspace_id}")
    told = [action.replace("_", " ").lower() for action in reversed(actions)]
    assert [words[: len(action)] for words, action in zip(seen, told, strict=True)] == told


def test_a_changed_row_is_told(desk, browse):
    with desk.world.platform.services.store.write() as db:
        changed = AuditEvent.chain_id == f"workspace:{desk.workspace_id}"
        db.execute(update(AuditEvent).where(changed, AuditEvent.position == 2).values(prev_hash=bytes(32)))
    person = browse("admin").open(f"/console/w/{desk.workspace_id}/audit")
    assert "do not follow one another" in person.words


def test_filters_are_kept_from_page_to_page_and_a_wrong_one_is_told(desk, browse):
    here = f"/console/w/{desk.workspace_id}/audit"
    person = browse("admin").open(f"{here}?category=VAULTS&from_day=2026-03-01&to_day=")
    assert {cells[2].endswith("vaults") for cells in person.rows} == {True}
    assert ("category", "VAULTS") in person.form(f"{here}/export").fields
    person.open(f"{here}?from_day=2026-03-02&to_day=2026-03-01", 422)
    assert "later than" in person.words
    assert "Nothing matches." in person.open(f"{here}?from_day=2030-01-01").words


def test_the_export_is_the_platforms_own_and_is_recorded(desk, browse):
    here = f"/console/w/{desk.workspace_id}/audit"
    person = browse("admin").open(here)
    sent = dict(person.form(f"{here}/export").fields)
    answer = person.http.post(f"{here}/export", data=sent, headers=SAME_SITE)
    assert answer.headers["content-disposition"] == f'attachment; filename="audit-{desk.workspace_id}.csv"'
    assert len(list(read_csv(answer.text.splitlines(keepends=True)))) >= 4
    assert desk.world.audit_actions(f"workspace:{desk.workspace_id}")[-1] == "EXPORTED"
