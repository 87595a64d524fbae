"""Each page that links lead to, as an administrator finds it: whole, headed, protected; hostile names."""

import re

from sqlalchemy import String, cast, update

from custody.common.pages.serving import HEADERS
from custody.server.console.application import ROOT, ROWS
from custody.server.store.models import (
    AddressBookEntryRow,
    AuditEventRow,
    DecisionRow,
    OnboardingRequestRow,
    OrganisationRow,
    PendingChangeRow,
    ProposalRow,
    RoleRow,
    ServiceAccountRow,
    SignInSessionRow,
    UserRow,
    VaultRow,
    WebhookDeliveryRow,
    WebhookRow,
    WorkspaceRow,
)
from tests.support.console import forms_of
from tests.support.console_rows import row_of, walk
from tests.support.custody import SHOP, ok
from tests.support.onboarding import REQUEST
from tests.support.paged import Markup

# Nothing that a person types may run, close a tag, or turn the reading direction.
HOSTILE = "<script>alert(1)</script>\"'>\u202egpj.exe"
# Nothing that a person writes makes a page wider than the screen.
LONG = "Hilfsunterstützungskassenverwaltung" * 2 + " for the third quarter"
_TYPED = re.compile(r'value="[^"]*"|<textarea.*?</textarea>', re.DOTALL)


# What members, programs and strangers write, and others are shown.
TEXTS = (
    (RoleRow, "description"), (WorkspaceRow, "description"), (UserRow, "first_name"), (UserRow, "surname"),
    (SignInSessionRow, "device"), (SignInSessionRow, "location"), (ProposalRow, "description"),
    (ProposalRow, "failure_reason"), (DecisionRow, "reason"), (AddressBookEntryRow, "name"),
    (WebhookRow, "disabled_reason"), (WebhookDeliveryRow, "error"), (ServiceAccountRow, "name"),
    (ServiceAccountRow, "last_used_from"), (PendingChangeRow, "asked_by_name"), (PendingChangeRow, "reason"),
    (AuditEventRow, "description"), (AuditEventRow, "user_name"), (OnboardingRequestRow, "org_name"),
    (OnboardingRequestRow, "messaging_handle"),
)  # fmt: skip


def poison(desk, text=HOSTILE, texts=TEXTS):
    with desk.store.write() as db:
        for model in (OrganisationRow, RoleRow, WorkspaceRow, VaultRow):
            # Names of roles differ within a workspace.
            db.execute(update(model).values(name=text + cast(model.id, String)))
        for model, column in texts:
            assert db.execute(update(model).values({column: text})).rowcount, model


def fill(desk):
    """Something of each kind that the pages show."""

    def does(call, user=None, /, **body):
        return ok(desk.tell(call, user, **body))

    does("add-whitelist-address", name="Shop", address=SHOP)
    hook = does("create-webhook", url="https://hooks.example.org/x", kinds=["*"])
    does("test-webhook", webhook_id=hook["webhook_id"])
    program = {"name": "P", "rights": ["VIEW_LOGS"], "networks": ["192.0.2.1"]}
    does("create-service-account", **program, expires_at="2026-06-30T00:00:00Z")
    ok(desk.admin.post("/api/v1/onboarding-requests", REQUEST))
    desk.deposit(50_000_000, 40_000_000)
    desk.decline("alice", ok(desk.propose(10_000))["psbt_id"])
    does("cancel-psbt", psbt_id=ok(desk.propose(10_000))["psbt_id"], reason="Twice")
    does("change-user-role", user_uuid=desk.user_ids["alice"], role_id=1)
    does("update-second-person-rule", is_on=True, confirming_role_id=1, cooling_off_hours=0)
    role = {"name": "R", "permissions": [], "transaction_limit": "0", "cycle_period": "M", "cycle_day": 1}
    body = {"workspace_id": desk.workspace_id, **role}
    change = does("request-change", path="/api/v1/create-role", body=body)
    does("decline-change", desk.signers["alice"], change_id=change["change_id"], reason="No")


def test_p80_every_page_is_whole_headed_and_lets_no_text_act(desk, browse):
    fill(desk)
    poison(desk)
    person, faults, seen = browse("admin"), [], 0
    for start in (f"{ROOT}/w/{desk.workspace_id}/", f"{ROOT}/account", f"{ROOT}/onboarding", f"{ROOT}/"):
        for path in walk(person, start):
            assert row_of("GET", path.partition("?")[0]) is not None, path
            seen += 1
            faults += [f"{path}: {fault}" for fault in judge(person)]
    assert faults == []
    assert seen > 20


_PARAMETER = re.compile(r"{\w+(:int)?}")


def test_what_no_path_question_and_form_can_hold_ends_in_a_page(desk, browse):
    """A number of thousands of digits, and U+0000."""
    http, here, wrong = browse("admin").http, str(desk.workspace_id), []
    for row in ROWS:
        inner = row.path.replace("{workspace_id:int}", here)
        path = ROOT + _PARAMETER.sub("1", inner)
        if row.method == "GET":
            places = {each for each in (row.path, inner) if "{" in each}
            strange = {ROOT + _PARAMETER.sub(text, each) for each in places for text in ("9" * 5000, "%00")}
            answers = [http.get(f"{path}?any=a%00b"), *map(http.get, strange)]
        else:
            answers = [http.post(path, data={"any": ["a", "b\0"]})]
        wrong += [
            f"{row.method} {answer.url.path[:60]} answers {answer.status_code}"
            for answer in answers
            if answer.status_code not in ({422} if answer is answers[0] else {404, 422})
            or "<h1>" not in answer.text
        ]
    assert wrong == []
    assert http.get(f"{ROOT}/w/{here}/tokens?after={'9' * 5000}").status_code == 422
    for digits in (18, 30):
        assert http.get(f"{ROOT}/w/{'9' * digits}/changed").status_code == 404


def judge(person):
    page = Markup(person.html)
    if person.status != 200 or page.broken:
        yield f"answers {person.status}, {page.broken}"
    if len(page.all("h1")) != 1:
        yield f"{len(page.all('h1'))} headings"
    for form in forms_of(person.html):
        if form.method == "post" and "form_token" not in dict(form.fields):
            yield f"the form of {form.action} has no token"
    if f'src="{ROOT}/static/press.js"' not in person.html:
        yield "a second press is taken (L17: tests/signerd/browser)"
    if "<script>alert" in person.html:
        yield "a name runs"
    if "\u202e" in _TYPED.sub("", person.html):
        yield "a name turns the reading direction"
    missing = [name for name in HEADERS if name not in person.headers]
    if missing:
        yield f"without {missing}"
