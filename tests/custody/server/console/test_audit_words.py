"""Rows of the log as sentences, made of the facts that they store."""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from custody.common.text import plain
from custody.schemas.call import Auth
from custody.schemas.calls import CALLS
from custody.schemas.logs import AuditLogEntry
from custody.server import address_book
from custody.server.calls import REFUSALS, REFUSED
from custody.server.console.audit import recipient_words, row_words, stored_words
from custody.server.people import organisations, roles, service_accounts
from custody.server.proposals import paying
from custody.server.rules.audit import Event

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
    (address_book.ADDED, {"entry": 5, "address": "bc1qexample"}),
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
    assert f"to <b>{escape(plain(name))}</b>, bc1qxxxx…xxxxxx{more}: " in sentence
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
