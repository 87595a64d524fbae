"""Changes that need a second person, by the console: asked for, shown in words, confirmed, declined."""

import pytest
from sqlalchemy import select

from custody.common.change_words import BESIDE_AMOUNT, FIELDS, UNSAID
from custody.schemas.calls import CONFIRMABLE
from custody.server.store.models import PendingChangeRow, UserRow
from tests.support.custody import SHOP, ok
from tests.support.staff import roles

ADMINISTRATOR = 1


@pytest.fixture
def two(desk, browse, here):
    """Two administrators, with the rule on."""
    ok(desk.tell("change-user-role", user_uuid=desk.user_ids["alice"], role_id=ADMINISTRATOR))
    path = f"{here}/changes"
    admin = browse("admin").open(path)
    admin.send(f"{path}/rule", is_on="yes", confirming_role_id=ADMINISTRATOR, cooling_off_hours="24")
    admin.confirm(f"{path}/rule")
    assert "The rule is on." in admin.words
    return admin, browse("alice")


def test_a_rule_that_its_role_could_not_keep_is_refused_before_the_review(browse, here):
    path = f"{here}/changes"
    rule = {"is_on": "yes", "confirming_role_id": str(ADMINISTRATOR), "cooling_off_hours": "24"}
    admin = browse("admin").open(path).send(f"{path}/rule", status=409, **rule)
    admin.says("Fewer than two members of the organisation's first workspace would have the role")


def test_what_the_rule_could_not_outlive_is_refused_before_the_review(desk, here, two):
    admin, alice = two[0], f"{here}/members/{desk.user_ids['alice']}"
    for form, typed in (("role", {"role_id": "2"}), ("remove", {})):
        admin.open(alice).send(f"{alice}/{form}", status=409, **typed)
        admin.says("Fewer than two members of the organisation's first workspace would have the role")
        assert "Ask a second person" not in admin.words


def ask(admin, here, name="Payers"):
    """A role with a limit, which needs a second person."""
    admin.open(f"{here}/roles/new").send(
        f"{here}/roles/new", name=name, transaction_limit="1", cycle_period="M", cycle_day="1",
        repeated=(("permissions", "VIEW_BALANCES"),), status=409,
    )  # fmt: skip
    assert "step_password" not in admin.html
    assert "Read the current state" not in admin.words
    return admin.send(f"{here}/roles/new", button="ask_second_person")


def test_no_code_is_asked_for_before_a_refusal_that_is_known(desk, here, two):
    admin, _ = two
    desk.world.clock.advance(minutes=11)
    ask(admin, here)
    # What is asked of a second person is a change, too.
    assert ("step_password" in admin.html, admin.url) == (True, f"{here}/roles/new")
    admin.confirm(f"{here}/roles/new")
    assert "Nothing is changed yet" in admin.words


def test_what_waits_for_a_second_person_promises_nothing_at_once(here, two):
    admin, _ = two
    limit = {"new_transaction_limit": "2", "cycle_period": "M", "cycle_day": "1"}
    admin.open(f"{here}/roles/1").send(f"{here}/roles/1/limit", **limit, status=409)
    assert "Another member has to confirm it first. It applies at once, to 2 members." in admin.words


def test_every_field_of_a_call_that_can_wait_has_words():
    named = set().union(*(call.takes.model_fields for call in CONFIRMABLE.values()))
    by_their_names = named - UNSAID - BESIDE_AMOUNT - set(FIELDS)
    # One word, or the id of what that word names.
    assert not [each for each in by_their_names if "_" in each.removesuffix("_id") or each.endswith("uid")]


def test_a_change_is_asked_for_shown_in_words_and_confirmed_after_cooling(desk, here, two):
    admin, alice = two
    ask(admin, here)
    assert (admin.url, "Nothing is changed yet" in admin.words) == (f"{here}/changes", True)
    alice.open(f"{here}/changes")
    assert alice.facts["Name"] == "Payers"
    limit = "at most 1.00000000 BTC in all payments of a calendar month (UTC) together"
    assert alice.facts["Limit"] == limit
    assert alice.facts["Permissions"] == "See balances and payments"
    assert alice.facts["Asked for by"] == "admin@example.org"
    assert (
        "cools off until 2 Mar 2026, 12:00 UTC, then can be confirmed until 9 Mar 2026, 12:00 UTC"
        in alice.words
    )
    alice.send(f"{here}/changes/confirm").confirm(f"{here}/changes/confirm", status=409)
    assert "cooling off" in alice.page.all("div", role="alert")[0].words
    desk.later(hours=25)
    alice.sign_in("alice@example.org").open(f"{here}/changes")
    assert "has cooled off, can be confirmed until 9 Mar 2026, 12:00 UTC" in alice.words
    alice.send(f"{here}/changes/confirm").confirm(f"{here}/changes/confirm")
    decided = [
        cells for cells in alice.rows if cells[1:3] == ["admin@example.org", "confirmed by alice@example.org"]
    ]
    assert ("Name: Payers" in decided[0][0], f"Limit: {limit}" in decided[0][0]) == (True, True)
    assert "Payers" in alice.open(f"{here}/roles").words
    ask(admin.sign_in("admin@example.org"), here, "Others").confirm(f"{here}/roles/new")
    desk.world.clock.advance(seconds=1)
    alice.open(f"{here}/changes").send(f"{here}/changes/decline", reason="<b>Too much</b>")
    assert "declined by alice@example.org: <b>Too much</b>" in alice.rows[0]


def test_what_is_confirmed_is_what_was_shown(desk, here, two):
    """Beside a limit stands the one in force, which another change has changed since."""
    _, alice = two
    limit = {"vault_id": desk.vault["id"], "cycle_period": "M", "cycle_day": 1}
    for amount in ("0.6", "0.4"):
        request(desk, "update-vault", desk.workspace_id, **limit, transaction_limit=amount)
    desk.later(hours=25)
    rows = desk.rows(PendingChangeRow)
    second, first = (row.id for row in sorted(rows, key=lambda row: row.body["transaction_limit"]))
    alice.sign_in("alice@example.org")
    confirm = f"{here}/changes/confirm"
    alice.open(f"{here}/changes").post_one(confirm, change_id=first)
    stale = dict(alice.form(confirm).fields)
    alice.open(f"{here}/changes").post_one(confirm, change_id=second).confirm(confirm)
    alice.post_one(confirm, **stale, status=409)
    assert "would now do something else" in alice.words
    made = next(cells[0] for cells in alice.open(f"{here}/changes").rows if "confirmed by" in cells[2])
    assert "Vault: Treasury" in made
    assert (
        "Limit: before at most 10.00000000 BTC in each payment, however many there are, then at most" in made
    )


@pytest.mark.parametrize(("decision", "words"), [("confirm", "confirmed"), ("decline", "declined")])
def test_a_change_that_was_decided_in_another_tab_says_so(desk, here, book, two, decision, words):
    _, alice = two
    change = request(desk, "remove-whitelist-address", desk.workspace_id, uid=book)
    confirm, said = f"{here}/changes/confirm", f"The change was {words} already."
    alice.open(f"{here}/changes")
    shown = alice.html
    alice.send(confirm)
    reviewed = alice.html
    ok(desk.tell(f"{decision}-change", desk.signers["alice"], change_id=change))
    for alice.html in (shown, reviewed):
        alice.send(confirm, status=409)
        assert said in alice.words
        assert "no longer exists" not in alice.page.all("div", role="alert")[0].words


def test_who_confirms_a_webhook_is_shown_its_secret(desk, here, two):
    """Once, as who makes one alone is: nobody else can read it."""
    _, alice = two
    request(desk, "create-webhook", desk.workspace_id, url="https://hooks.example.org/", kinds=["*"])
    desk.later(hours=25)
    alice.sign_in("alice@example.org").open(f"{here}/changes")
    alice.send(f"{here}/changes/confirm").confirm(f"{here}/changes/confirm")
    assert alice.page.by_id("secret").words.startswith("whsec_")


@pytest.fixture
def other(desk):
    """The administrator's own workspace in the same organisation, from before the rule; its number."""
    (organisation,) = ok(desk.admin.get("/api/v1/get-user-info"))["OrganisationsInfo"]["Organisations"]
    named = {"name": "Real money", "description": "of the customers", "network": "mainnet"}
    made = ok(desk.tell("create-workspace", org_id=organisation["OrgID"], **named))
    return made["WorkspaceInfo"]["uid"]


@pytest.fixture
def book(desk):
    """The number of an entry, from before the rule."""
    return desk.enter("Shop", SHOP)["uid"]


def request(desk, path, workspace_id, **body):
    """By the administrator. The change's id."""
    asked = {"path": f"/api/v1/{path}", "body": {"workspace_id": workspace_id, **body}}
    return ok(desk.tell("request-change", workspace_id=workspace_id, **asked))["change_id"]


def test_a_change_of_another_workspace_is_named_to_who_is_no_member_of_it(desk, here, other, two):
    _, alice = two
    (role, *_) = roles(desk.admin, other).values()
    request(desk, "update-role", other, role_id=role["RoleId"], name="Payers", description="")
    said = [("Workspace", "Real money, on mainnet"), ("Role", role["Name"]), ("Name", "Payers")]
    assert list(alice.open(f"{here}/changes").facts.items())[:3] == said
    alice.send(f"{here}/changes/confirm")
    assert said[0] == next(iter(alice.facts.items()))
    assert set(said) < set(alice.facts.items())


def test_a_number_of_another_workspace_or_organisation_names_nothing(desk, here, other, two):
    """Asking for a change reveals no name."""
    desk.world.organisation("Other", "stranger@example.org")
    _, alice = two
    (role, *_) = roles(desk.admin, other).values()
    request(desk, "update-role", desk.workspace_id, role_id=ADMINISTRATOR, name="Payers", description="")
    with desk.store.write() as db:
        change = db.scalars(select(PendingChangeRow).where(PendingChangeRow.status == "PENDING")).one()
        stranger = db.scalars(select(UserRow.id).where(UserRow.email == "stranger@example.org")).one()
        change.body = {**change.body, "role_id": role["RoleId"], "user_uuid": stranger}
    alice.open(f"{here}/changes")
    assert alice.facts["Role"] == "a role that no longer exists"
    assert alice.facts["Person"] == "a member that no longer exists"


def test_what_is_not_there_any_more_is_said_and_not_confirmed(desk, here, book, two):
    _, alice = two
    kept = request(desk, "rename-whitelist-address", desk.workspace_id, uid=book, name="Kraken")
    gone = request(desk, "remove-whitelist-address", desk.workspace_id, uid=book)
    ok(desk.tell("confirm-change", desk.signers["alice"], change_id=gone))
    alice.open(f"{here}/changes")
    assert alice.facts["Entry of the address book"] == "an entry that no longer exists"
    assert f'action="{here}/changes/confirm"' not in alice.html
    alice.post_one(f"{here}/changes/confirm", status=409, change_id=kept, confirmed="yes")


def test_a_limit_is_shown_beside_the_one_in_force_and_a_key_with_its_owner(desk, here, two):
    _, alice = two
    limits = {"transaction_limit": "2", "cycle_period": "W", "cycle_day": 1}
    request(desk, "update-vault", desk.workspace_id, vault_id=desk.vault["id"], **limits)
    before = desk.wallets()[0]["detailed_vault_limits"]["Limit"]
    each = "in each payment, however many there are"
    raised = f"now at most {before} BTC {each}, from then on at most 2.00000000 BTC {each}"
    assert alice.open(f"{here}/changes").facts["Limit"] == raised
    assert alice.send(f"{here}/changes/confirm").facts["Limit"] == raised
    key_id = desk.vault["signers"][1]["key_id"]
    request(desk, "revoke-key", desk.workspace_id, key_id=key_id, reason="lost")
    (key,) = ok(desk.signers["bob"].get("/api/v1/keys"))
    alice.open(f"{here}/changes")
    assert alice.facts["Key"] == f"of bob@example.org, fingerprint {key['MasterFingerprint']['String']}"
