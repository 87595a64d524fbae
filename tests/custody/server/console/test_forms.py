"""Each form of the administration: it shows back what was typed, and does it once that is confirmed.

Vaults, proposals and tokens have stories of their own.
"""

import re

from custody.server.console.application import ROWS
from custody.server.store.models import AddressBookEntryRow, RoleRow, ServiceAccountRow, WebhookRow
from tests.support.console import forms_of
from tests.support.custody import SHOP

ROLE = {
    "name": "Payer", "transaction_limit": "0.5", "cycle_period": "W", "cycle_day": "2",
    "permissions": ["PAYMENT_INIT", "VIEW_BALANCES"],
}  # fmt: skip
WEEKLY = "at most 0.50000000 BTC in all payments of a week from Tuesday (UTC) together"
MONTHLY = "at most 2.00000000 BTC in all payments of a month from day 31 (UTC) together"
LIMIT = {"new_transaction_limit": "2", "cycle_period": "M", "cycle_day": "31"}
PROGRAM = {
    "name": "Ledger", "networks": "192.0.2.0/24\n2001:db8::/48", "expires_on": "2026-06-30",
    "rights": ["VIEW_BALANCES"],
}  # fmt: skip
HOOK = "https://hooks.example.org/custody"
# By the form: the page where it is not the form's own, what is typed, a fact of the review (none: it acts at
# once), and what is recorded.
FORMS = (
    ("workspace/name", "workspace", {"name": "Office"}, ("Name", "Office"), "WORKSPACE_UPDATED"),
    ("workspace/checks", "workspace", {"key_check_months": "6"}, ("Months between key checks", "6"),
     "KEY_CHECKS_CHANGED"),
    ("members/invite", "members", {"invited_email": "x@example.org"},
     ("Role", "Signer"),
     "INVITATION_SENT"),
    ("members/revoke", "members", {}, None, "INVITATION_REVOKED"),
    ("members/{carol}/role", "members/{carol}", {"role_id": "1"}, ("Current role", "Signer"),
     "MEMBER_ROLE_CHANGED"),
    ("members/{carol}/remove", "members/{carol}", {}, ("Person", "carol@example.org"), "MEMBER_REMOVED"),
    ("roles/new", "", ROLE, ("Limit", WEEKLY), "ROLE_CREATED"),
    ("roles/{role}/take", "roles/{role}", {"rule_name": "VIEW_BALANCES"},
     ("Permission", "See balances and payments"), "PERMISSION_REMOVED"),
    ("roles/{role}/add", "roles/{role}", {"rule_name": "VIEW_BALANCES"},
     ("Permission", "See balances and payments"), "PERMISSION_ADDED"),
    ("roles/{role}/limit", "roles/{role}", LIMIT,
     ("Limit of each member", f"now {WEEKLY}, from then on {MONTHLY}"), "ROLE_POLICY_REPLACED"),
    ("roles/{role}/name", "roles/{role}", {"name": "Paymaster"}, ("Name", "Paymaster"), "ROLE_UPDATED"),
    ("roles/{role}/delete", "roles/{role}", {}, ("Role", "Paymaster"), "ROLE_DELETED"),
    ("programs/new", "", PROGRAM, ("Networks", "192.0.2.0/24; 2001:db8::/48"), "SERVICE_ACCOUNT_CREATED"),
    ("programs/{program}/secret", "programs/{program}", {"overlap_hours": "1"}, ("Program", "Ledger"),
     "SERVICE_SECRET_MADE"),
    ("programs/{program}/change", "programs/{program}", {"name": "Bookkeeping"}, ("Name", "Bookkeeping"),
     "SERVICE_ACCOUNT_CHANGED"),
    ("programs/{program}/revoke", "programs/{program}", {}, ("Program", "Bookkeeping"),
     "SERVICE_ACCOUNT_REVOKED"),
    ("webhooks/new", "", {"url": HOOK, "every_kind": "yes"}, ("Events", "all events"), "WEBHOOK_CREATED"),
    ("webhooks/{hook}/test", "webhooks/{hook}", {}, None, "WEBHOOK_TESTED"),
    ("webhooks/{hook}/change", "webhooks/{hook}", {"do": "kinds", "kinds": "deposit.seen"},
     ("Events", "deposit seen"), "WEBHOOK_UPDATED"),
    ("webhooks/{hook}/change", "webhooks/{hook}", {"do": "disable"}, ("Switched on", "no"),
     "WEBHOOK_UPDATED"),
    ("webhooks/{hook}/change", "webhooks/{hook}", {"do": "rotate"}, ("Make a new secret", "yes"),
     "WEBHOOK_UPDATED"),
    ("webhooks/{hook}/delete", "webhooks/{hook}", {}, ("Webhook", HOOK), "WEBHOOK_DELETED"),
    ("addresses", "", {"name": "Shop", "address": f" {SHOP} "}, ("Address", SHOP), "ADDRESS_ADDED"),
    ("addresses/{entry}/name", "addresses/{entry}", {"name": "The shop"}, ("Name", "The shop"),
     "ADDRESS_RENAMED"),
    ("addresses/{entry}/remove", "addresses/{entry}", {},
     ("Entry of the address book", f"The shop, {SHOP}"), "ADDRESS_REMOVED"),
)  # fmt: skip
NUMBERED = {"role": RoleRow, "program": ServiceAccountRow, "hook": WebhookRow, "entry": AddressBookEntryRow}
# `test_members`, `test_addresses`, `test_programs`.
ELSEWHERE = {"members/add", "workspace/new", "addresses/import", "webhooks/{}/redeliver"}


def test_the_table_has_every_form():
    paths = [re.sub(r"{\w+(:int)?}", "{}", row.path) for row in ROWS if row.method == "POST"]
    own = {path.removeprefix("/w/{}/") for path in paths if path.startswith("/w/{}/")}
    areas = ("workspace", "members", "roles", "programs", "webhooks", "addresses")
    listed = {re.sub(r"{\w+}", "{}", form) for form, *_ in FORMS}
    assert {path for path in own if path.startswith(areas)} == listed | ELSEWHERE


def test_each_form_is_shown_back_and_then_done(desk, browse):
    person, here, secrets = browse("admin"), f"/console/w/{desk.workspace_id}", set()

    def recorded() -> list[str]:
        return desk.world.audit_actions(f"workspace:{desk.workspace_id}")

    for form, page, typed, fact, action in FORMS:
        ids = {"carol": desk.user_ids["carol"]}
        # A review tries its form and takes it back: in PostgreSQL the number of a row is gone with it.
        for name, model in NUMBERED.items():
            ids[name] = max((row.id for row in desk.rows(model)), default="")
        path, before = f"{here}/{form.format(**ids)}", recorded()
        person.open(f"{here}/{(page or form).format(**ids)}")
        assert not [secret for secret in secrets if secret in person.html], "it is shown once"
        plain = {name: text for name, text in typed.items() if isinstance(text, str)}
        if sum(each.action == path for each in forms_of(person.html)) > 1:
            person.post_one(path, **plain)
        else:
            several = tuple((name, each) for name in typed.keys() - plain.keys() for each in typed[name])
            person.send(path, repeated=several, **plain)
        if fact is not None:
            assert (fact in person.facts.items(), recorded()) == (True, before), (form, person.facts)
            person.confirm(path)
        assert recorded()[len(before) :] == [action], form
        if 'id="secret"' in person.html:
            secrets.add(person.page.by_id("secret").words)
    assert len(secrets) == 3, "of the program, of the webhook, and its new one"
