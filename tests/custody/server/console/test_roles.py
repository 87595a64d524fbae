"""Roles and limits by the console."""

import pytest

from custody.server.store import Store
from tests.support.custody import ok


@pytest.fixture
def here(desk):
    return f"/console/w/{desk.workspace_id}/roles"


def roles_of(desk):
    found = ok(desk.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=desk.workspace_id))
    return {role["Name"]: role for role in found}


def make(person, here, name="Payer", status=200, **changes):
    typed = {"transaction_limit": "0.5", "cycle_period": "W", "cycle_day": "2", **changes}
    chosen = (("permissions", "PAYMENT_INIT"), ("permissions", "VIEW_BALANCES"))
    return person.open(f"{here}/new").send(f"{here}/new", name=name, repeated=chosen, status=status, **typed)


def test_a_role_is_made_shown_back_and_deleted(desk, browse, here):
    person = make(browse("admin"), here)
    assert (
        person.facts["Limit"]
        == "at most 0.50000000 BTC in all payments of a week from Tuesday (UTC) together"
    )
    assert "Payer" not in roles_of(desk)
    person.confirm(f"{here}/new")
    made = roles_of(desk)["Payer"]
    assert {each["RuleName"] for each in made["Perm"]} == {"PAYMENT_INIT", "VIEW_BALANCES"}
    assert (made["TransactionLimit"], made["CyclePeriod"], made["CycleDay"]) == ("0.50000000", "W", 2)
    one = f"{here}/{made['RoleId']}"
    person.open(one).send(f"{one}/delete").confirm(f"{one}/delete")
    assert "Payer" not in roles_of(desk)


def test_a_role_begins_with_a_ready_made_one_and_is_changed_before_it_is_made(desk, browse, here):
    person = browse("admin").open(f"{here}/new?as=Auditor")
    person.send(f"{here}/new", description="Of the year's end")
    assert person.facts["Permissions"] == "See balances and payments; Read the audit log"
    person.confirm(f"{here}/new")
    made = roles_of(desk)["Auditor"]
    assert {each["RuleName"] for each in made["Perm"]} == {"VIEW_BALANCES", "VIEW_LOGS"}
    assert (made["Description"], made["TransactionLimit"]) == ("Of the year's end", "0.00000000")


def test_a_permission_is_added_and_taken_and_a_limit_changed(desk, browse, here):
    person = make(browse("admin"), here).confirm(f"{here}/new")
    one = f"{here}/{roles_of(desk)['Payer']['RoleId']}"
    for does, held in (("take", {"PAYMENT_INIT"}), ("add", {"PAYMENT_INIT", "VIEW_BALANCES"})):
        person.open(one).post_one(f"{one}/{does}", rule_name="VIEW_BALANCES")
        person.confirm(f"{one}/{does}")
        assert {each["RuleName"] for each in roles_of(desk)["Payer"]["Perm"]} == held
    person.open(one).send(f"{one}/limit", new_transaction_limit="2", cycle_period="M", cycle_day="31")
    assert "now at most 0.50000000 BTC in all payments of a week" in person.facts["Limit of each member"]
    person.confirm(f"{one}/limit")
    assert roles_of(desk)["Payer"]["TransactionLimit"] == "2.00000000"
    typed = {"new_transaction_limit": "3", "cycle_period": "M", "cycle_day": "31"}
    person.open(one)
    role = {"workspace_id": desk.workspace_id, "role_id": roles_of(desk)["Payer"]["RoleId"]}
    others = {"new_transaction_limit": "1", "cycle_period": "M", "cycle_day": 31}
    ok(desk.admin.post("/api/v1/update-role-policies", {**role, **others}))
    # A refusal for something else renews nothing.
    person.send(f"{one}/limit", **typed | {"cycle_day": "40"}, status=422)
    person.send(f"{one}/limit", **typed, status=409)
    assert "It was changed while you looked at it." in person.words
    person.send(f"{one}/limit")
    assert "now at most 1.00000000 BTC" in person.facts["Limit of each member"]
    person.open(one).send(f"{one}/name", name="Paymaster").confirm(f"{one}/name")
    assert "Paymaster" in roles_of(desk)


def test_the_last_administrators_role_keeps_what_a_workspace_is_run_with(desk, browse, here):
    one = f"{here}/{roles_of(desk)['Administrator']['RoleId']}"
    person = browse("admin").open(one)
    person.post_one(f"{one}/take", rule_name="MANAGE_USERS")
    person.confirm(f"{one}/take", status=409)
    assert "A workspace keeps one member who can manage it" in person.words


def test_ones_own_limit_is_a_sum_with_what_is_left_of_it(desk, browse, here):
    role = roles_of(desk)["Administrator"]["RoleId"]
    path = f"/console/w/{desk.workspace_id}/limits"
    person = browse("admin").open(path)
    assert "As much as the vaults' limits allow." in person.words
    cycle = {"cycle_period": "M", "cycle_day": 1}
    body = {"workspace_id": desk.workspace_id, "role_id": role, "new_transaction_limit": "2"}
    ok(desk.admin.post("/api/v1/update-role-policies", body | cycle))
    assert "Treasury your limit bounds it2.00000000 BTC" in person.open(path).words, person.words
    (bar,) = person.page.all("svg")
    assert bar.attributes["aria-label"] == "0.0 percent of it is used"
    for words in ("in all payments of a calendar month (UTC) together", "left until 1 April"):
        assert words in person.words
    vault = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    ok(desk.signers["alice"].post("/api/v1/freeze-vault", vault))
    assert "Treasuryfrozen" in person.open(path).words, person.words
    alice = browse("alice").open(path)
    assert "No payment: the limit is 0." in alice.words
    signers = {"role_id": roles_of(desk)["Signer"]["RoleId"]}
    ok(desk.admin.post("/api/v1/update-role-policies", body | cycle | signers))
    assert "At most 2.00000000 BTC" in alice.open(path).words
    assert "Treasury" not in alice.words, "a signer proposes no payment"


def test_a_page_reads_in_one_snapshot_and_a_form_acts_in_one_transaction(browse, here, monkeypatch):
    opened = []
    for name in ("read", "write"):
        inner = getattr(Store, name)
        counted = lambda self, name=name, inner=inner: opened.append(name) or inner(self)  # noqa: E731
        monkeypatch.setattr(Store, name, counted)
    new = f"{here}/new"
    # A form that asks for a proof, too, writes a challenge.
    person = make(browse("admin"), here, "Clerk").confirm(new)
    typed = {"name": "Payer", "transaction_limit": "0.5", "cycle_period": "W", "cycle_day": "2"}
    for step, expected in (
        (lambda: person.open(here), ["read"]),
        (lambda: person.open(new), ["read"]),
        (lambda: person.send(new, **typed), ["read"]),
        (lambda: person.confirm(new), ["read", "write", "read"]),
    ):
        opened.clear()
        step()
        assert opened == expected
