"""Rows of the log as sentences, where a person chose a name that holds the table's own words."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from custody.schemas.calls import CALLS
from custody.schemas.logs import AuditLogEntry
from custody.schemas.permissions import Auth
from custody.server.calls import REFUSALS
from custody.server.console.audit_words import recipient_words, row_words

# How rows are written; ``@`` is a name that a person chose.
WRITTEN: Final = (
    ("ROLE_CREATED", "role 9, named @, with MANAGE_USERS, VIEW_LOGS; 100.00000000 BTC a cycle, M from day 1"),
    ("ROLE_UPDATED", "role 9, named @; now @"),
    ("ROLE_DELETED", "role 9, named @"),
    ("WORKSPACE_CREATED", "workspace 3, named @, on mainnet"),
    ("SECOND_PERSON_RULE_SET", "on, @ confirms, 0 hours of cooling off"),
    ("SERVICE_ACCOUNT_CREATED", "service account 3 (@), may VIEW_LOGS from 10.0.0.0/8 until 2027-01-01"),
    ("ADDRESS_ADDED", "entry 5, bc1qexample, named @"),
)  # fmt: skip
PIECES: Final = (
    "Clerk", ", with VIEW_LOGS", "; 0.00100000 BTC a cycle, W from day 1", "; 0.001", ", with nothing",
    "; now ",
    ", named ", ", on testnet", " confirms, 336 hours of cooling off", "), ", " (", "entry 5, bc1q, named ",
)  # fmt: skip
NAMES: Final = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join).map(str.strip)


def row(action: str, description: str) -> AuditLogEntry:
    return AuditLogEntry.model_construct(
        action=action, description=description, category="PEOPLE", user_uuid=7, user_name="ann@example.org"
    )


@given(st.sampled_from(WRITTEN), st.tuples(NAMES, NAMES))
def test_a_name_is_told_whole_or_the_row_as_it_is_stored(written, names):
    action, form = written
    first, *others = form.split("@")
    description = first + "".join(name + text for name, text in zip(names, others, strict=False))
    found = row_words(row(action, description), {})
    if found.is_known:
        assert [f"<b>{escape(name)}</b>" in found.sentence for name in names[: len(others)]] == [True] * len(
            others
        )
    else:
        assert escape(description) in found.sentence


@pytest.mark.parametrize(("action", "form"), WRITTEN)
def test_a_plain_name_has_a_sentence(action, form):
    assert row_words(row(action, form.replace("@", "Clerk, with care")), {}).is_known


def test_what_a_role_may_do_is_never_hidden_by_its_name():
    name = "Clerk, with VIEW_LOGS; 0.001"
    written = (
        f"role 9, named {name}, with MANAGE_WORKSPACE, PAYMENT_INIT; 100.00000000 BTC a cycle, M from day 1"
    )
    sentence = row_words(row("ROLE_CREATED", written), {}).sentence
    assert f"<b>{name}</b>, whose members each pay at most 100 BTC in all payments of a calendar" in sentence


@given(NAMES, st.integers(0, 2))
def test_a_recipients_name_rewrites_no_sentence(name, others):
    proposal, vault = "1f" * 16, "2e" * 16
    written = f"proposal {proposal} of vault {vault}, 5000 sat with the fee, tx {'ab' * 32}"
    paid = recipient_words("bc1q" + "x" * 38, name, others)
    sentence = row_words(row("PROPOSAL_CREATED", written), {}, {proposal: paid}).sentence
    more = ("", " and 1 other", " and 2 others")[others]
    assert f"to <b>{escape(name)}</b>, bc1qxxxx…xxxxxx{more}: " in sentence
    assert (
        "to bc1qxxxx…xxxxxx"
        in row_words(
            row("PROPOSAL_CREATED", written), {}, {proposal: recipient_words("bc1q" + "x" * 38, None, 0)}
        ).sentence
    )


def test_a_limit_is_told_with_what_it_bounds_before_and_after():
    before, after = "0.05000000 BTC a cycle, M from day 1", "1.00000000 BTC a movement, W from day 2"
    vault = row_words(row("VAULT_POLICY_REPLACED", f"vault {'1f' * 16}: {before}; now {after}"), {}).sentence
    month, each = (
        "in all payments of a calendar month (UTC) together",
        "in each payment, however many there are",
    )
    assert vault.endswith(f"from 0.05 BTC {month} to 1 BTC {each}")
    forged = f"vault {'1f' * 16}: {before}; now {after.replace('day 2', 'day 8')}"
    assert not row_words(row("VAULT_POLICY_REPLACED", forged), {}).is_known, "a week has no day 8"
    role = row_words(
        row("ROLE_POLICY_REPLACED", f"role 3: {before}; now {before}"), {"role 3": "Clerk"}
    ).sentence
    assert "the limit of each member of the role <b>Clerk</b> from 0.05 BTC" in role


def test_each_refusal_within_a_workspace_is_told_in_words():
    calls = [each for each in CALLS if not isinstance(each.needs, Auth)]
    for code in {error.code for error in REFUSALS}:
        for call in calls:
            entry = row(code, f"{call.method} {call.path}").model_copy(update={"category": "ACCESS"})
            tried, why = row_words(entry, {}).sentence.split(" tried to ")[1].split(", and was refused: ")
            assert tried != call.path.rpartition("/")[2].replace("-", " ")
            assert tried not in {"", "contract calls"}
            assert why != code.replace("_", " ").lower()
