"""The audit log by the console: filters, pages, what follows what, the export; rows as sentences, made of the
facts that they store.
"""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape
from sqlalchemy import update

from custody.common.text import plain
from custody.schemas.call import Auth, PermissionName
from custody.schemas.calls import CALLS
from custody.schemas.logs import AuditLogEntry
from custody.server import address_book
from custody.server.calls import REFUSALS, REFUSED
from custody.server.console import audit
from custody.server.console.audit import recipient_words, row_words, stored_words
from custody.server.people import organisations, roles, service_accounts
from custody.server.proposals import paying
from custody.server.rules.audit import Event
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
    assert told[0] == f"alice@example.org declined the proposal Rent ({psbt_id[:8]})."
    assert told[1].startswith(
        f"<b>Ada (admin@example.org) proposed the payment Rent ({psbt_id[:8]}) from the vault Treasury "
        f"to Landlord, {SHOP[:10]}…{SHOP[-6:]}: 0.0001"
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
    assert f"{SHOP[:10]}…" not in person.words


def test_filters_are_kept_from_page_to_page_and_a_wrong_one_is_told(desk, browse):
    here = f"/console/w/{desk.workspace_id}/audit"
    person = browse("admin").open(f"{here}?category=VAULTS&from_day=2026-03-01&to_day=")
    assert {"VAULTS" in cells[2] for cells in person.rows} == {True}
    assert ("category", "VAULTS") in person.form(f"{here}/export").fields
    person.open(f"{here}?from_day=2026-03-02&to_day=2026-03-01", 422)
    (told,) = [tag.words for tag in person.page.tags if tag.attributes.get("class") == "problem"]
    assert told == "From is later than To: change one of them."
    assert person.page.by_id("from_day").attributes["value"] == "2026-03-02"


VAULT, PROPOSAL = "1f" * 16, "2e" * 16
MONTHLY: Final = {"sats": 5_000_000, "per_cycle": True, "cycle_period": "M", "cycle_day": 1}
# Whatever a person types: words of the sentences, markup, and what cannot be seen.
NAMES: Final = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30) | st.sampled_from(
    ("Clerk, with VIEW_LOGS; 0.001", "; now {name}", "[{rights}|x]", "<b>x</b>", "a\u202eb", "%s {0}")
)
FACTS: Final[tuple[tuple[Event, dict[str, Any]], ...]] = (
    (roles.CREATED, {"role": 9, "rights": ["VIEW_LOGS"], "limit": MONTHLY}),
    (roles.RENAMED, {"role": 9, "new_name": "Clerk"}),
    (roles.DELETED, {"role": 9}),
    (organisations.CREATED, {"workspace": 3, "network": "mainnet"}),
    (service_accounts.REVOKED, {"account": 3, "user": 7}),
    (address_book.ADDED, {"entry": 5, "address": "bc1qexample", "resembles": None}),
)


def entry(event: Event, description: str) -> AuditLogEntry:
    what = {"action": event.action, "category": event.category, "description": description}
    return AuditLogEntry.model_construct(user_uuid=7, user_name="ann@example.org", **what)


def words(event: Event, facts: dict[str, Any], names: dict[str, str] | None = None, **more: Any) -> Markup:
    found = row_words(entry(event, event.describe(facts)), facts, names or {}, **more)
    assert found is not None
    return found


@given(st.sampled_from(FACTS), NAMES)
def test_a_name_stands_whole_and_alone_whatever_it_contains(case, name):
    event, facts = case
    assert f"<b>{escape(plain(name))}</b>" in words(event, {**facts, "name": name})


@given(NAMES, st.integers(0, 2))
def test_a_recipients_name_rewrites_no_sentence(name, others):
    facts = {"proposal": PROPOSAL, "vault": VAULT, "sats": 5000, "txid": "ab" * 32}
    paid = recipient_words("bc1q" + "x" * 38, name, others)
    more = ("", " and 1 other", " and 2 others")[others]
    sentence = words(paying.PROPOSED, facts, recipients={PROPOSAL: paid})
    assert f"to <b>{escape(plain(name))}</b>, bc1qxxxxxx…xxxxxx{more}: " in sentence
    assert " to " not in words(paying.PROPOSED, facts)


ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda few: st.lists(few, max_size=3) | st.dictionaries(st.text(max_size=5), few, max_size=3),
)


@given(st.sampled_from(FACTS), st.sampled_from(("name", "role", "rights", "limit", "entry")), ANYTHING)
def test_a_row_whose_facts_were_altered_has_words_all_the_same(case, altered, fact):
    event, facts = case
    row = entry(event, "as it was")
    assert row_words(row, {"name": "Clerk", **facts, altered: fact}, {}) or stored_words(row, {})


def test_each_refusal_within_a_workspace_is_told_in_words():
    calls = [each for each in CALLS if not isinstance(each.needs, Auth)]
    for code in {error.code for error in REFUSALS}:
        for call in calls:
            sentence = words(REFUSED[code], {"method": call.method, "tried": call.path})
            tried = sentence.split(" tried to ")[1].split(", and was refused: ")[0]
            assert tried != call.path.rpartition("/")[2].replace("-", " ")
            assert tried not in {"", "contract calls"}
