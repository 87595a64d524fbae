"""Roles and limits by the console."""

import pytest

from custody.server.store import Store
from tests.support.custody import ok
from tests.support.staff import carried, roles


@pytest.fixture
def path(here):
    return f"{here}/roles"


def make(person, path, name="Payer", status=200, **changes):
    typed = {"transaction_limit": "0.5", "cycle_period": "W", "cycle_day": "2", **changes}
    chosen = (("permissions", "PAYMENT_INIT"), ("permissions", "VIEW_BALANCES"))
    return person.open(f"{path}/new").send(f"{path}/new", name=name, repeated=chosen, status=status, **typed)


def test_a_role_begins_with_a_ready_made_one_and_is_changed_before_it_is_made(desk, browse, path):
    person = browse("admin").open(f"{path}/new?as=Auditor")
    person.send(f"{path}/new", description="Of the year's end")
    assert person.facts["Permissions"] == "See balances and payments; Read the audit log"
    person.confirm(f"{path}/new")
    made = roles(desk.admin)["Auditor"]
    assert set(carried(made)) == {"VIEW_BALANCES", "VIEW_LOGS"}
    assert (made["Description"], made["TransactionLimit"]) == ("Of the year's end", "0.00000000")


def test_a_vault_manager_proposes_nothing(desk, browse, path):
    person = browse("admin").open(f"{path}/new")
    person.open(f"{path}/new{person.link('Vault manager')}").send(f"{path}/new").confirm(f"{path}/new")
    role_id = roles(desk.admin)["Vault manager"]["RoleId"]
    desk.world.member(desk.workspace_id, "dora@example.org", "Vault manager")
    assert (role_id, "No payment: the limit is 0." in browse("dora").open(f"{path[:-5]}limits").words) == (
        role_id,
        True,
    )


def test_a_limit_that_another_changed_meanwhile_is_looked_at_again(desk, browse, path):
    person = make(browse("admin"), path).confirm(f"{path}/new")
    role_id = roles(desk.admin)["Payer"]["RoleId"]
    limit = f"{path}/{role_id}/limit"
    typed = {"new_transaction_limit": "3", "cycle_period": "M", "cycle_day": "31"}
    person.open(f"{path}/{role_id}")
    desk.limit_role("1", role_id=role_id)
    # A refusal for something else renews nothing.
    person.send(limit, **typed | {"cycle_day": "40"}, status=422)
    person.send(limit, **typed, status=409)
    assert "It was changed while you looked at it." in person.words
    person.send(limit)
    assert "now at most 1.00000000 BTC" in person.facts["Limit of each member"]


def test_ones_own_limit_is_a_sum_with_what_is_left_of_it(desk, browse, here):
    limits = f"{here}/limits"
    person = browse("admin").open(limits)
    assert "As much as the vaults' limits allow." in person.words
    desk.limit_role("2")
    assert "Treasury your limit bounds it2.00000000 BTC" in person.open(limits).words, person.words
    (bar,) = person.page.all("svg")
    assert bar.attributes["aria-label"] == "0.0 percent of it is used"
    assert "left until 1 April" in person.words
    alice = browse("alice").open(limits)
    assert "No payment: the limit is 0." in alice.words
    desk.limit_role("2", role_id=roles(desk.admin)["Signer"]["RoleId"])
    assert "At most 2.00000000 BTC" in alice.open(limits).words
    assert "Treasury" not in alice.words, "a signer proposes no payment"
    desk.deposit(100_000)
    ok(desk.propose(20_000))
    person.open(limits)
    assert "admin@example.org (you)" in person.open(person.link("What you proposed since 1 March")).words


def test_a_page_reads_in_one_snapshot_and_a_form_acts_in_one_transaction(browse, path, monkeypatch):
    opened = []
    for name in ("read", "write"):
        inner = getattr(Store, name)
        counted = lambda self, name=name, inner=inner: opened.append(name) or inner(self)  # noqa: E731
        monkeypatch.setattr(Store, name, counted)
    new = f"{path}/new"
    # A form that asks for a proof, too, writes a challenge.
    person = make(browse("admin"), path, "Clerk").confirm(new)
    typed = {"name": "Payer", "transaction_limit": "0.5", "cycle_period": "W", "cycle_day": "2"}
    for step, expected in (
        (lambda: person.open(path), ["read"]),
        (lambda: person.open(new), ["read"]),
        # The trial of what is shown back, which is rolled back.
        (lambda: person.send(new, **typed), ["read", "write", "read"]),
        (lambda: person.confirm(new), ["read", "write", "read"]),
    ):
        opened.clear()
        step()
        assert opened == expected
