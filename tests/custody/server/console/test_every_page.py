"""Each page that links lead to, as an administrator finds it: whole, headed, protected; hostile names."""

import re

from sqlalchemy import String, cast, update

from custody.pages.headers import HEADERS
from custody.server.console.application import ROOT, ROWS
from custody.server.store.models import Organisation, Role, User, Vault, Workspace
from tests.support.console import Forms
from tests.support.console_rows import row_of, walk
from tests.support.custody import SHOP, ok
from tests.support.paged import Markup

# Nothing that a person types may run, close a tag, or turn the reading direction.
HOSTILE = "<script>alert(1)</script>\"'>\u202egpj.exe"
_TYPED = re.compile(r'value="[^"]*"|<textarea.*?</textarea>', re.DOTALL)


def poison(desk):
    with desk.world.platform.services.store.write() as db:
        for model in (Organisation, Role, Workspace, Vault):
            # Names of roles differ within a workspace.
            db.execute(update(model).values(name=HOSTILE + cast(model.id, String)))
        db.execute(update(User).values(first_name=HOSTILE, surname=HOSTILE))
        db.execute(update(Role).values(description=HOSTILE))
        db.execute(update(Workspace).values(description=HOSTILE))


def test_every_page_is_whole_headed_and_lets_no_name_act(desk, browse):
    here = {"workspace_id": desk.workspace_id}
    ok(desk.admin.post("/api/v1/add-whitelist-address", {**here, "name": "Shop", "address": SHOP}))
    hook = {**here, "url": "https://hooks.example.org/x", "kinds": ["*"]}
    ok(desk.admin.post("/api/v1/create-webhook", hook))
    program = {"name": "P", "rights": ["VIEW_LOGS"], "networks": ["192.0.2.1"]}
    ok(
        desk.admin.post(
            "/api/v1/create-service-account", {**here, **program, "expires_at": "2026-06-30T00:00:00Z"}
        )
    )
    desk.deposit(50_000_000)
    poison(desk)
    person, faults, seen = browse("admin"), [], 0
    for start in (f"{ROOT}/w/{desk.workspace_id}/", f"{ROOT}/account", f"{ROOT}/onboarding", f"{ROOT}/"):
        for path in walk(person, start):
            if row_of("GET", path.partition("?")[0]) is None:
                continue
            seen += 1
            faults += [f"{path}: {fault}" for fault in judge(person)]
    assert faults == []
    assert seen > 20


NINES = "9" * 5000
_PARAMETER = re.compile(r"{\w+(:int)?}")


def test_a_number_of_thousands_of_digits_ends_in_a_page(desk, browse):
    http, here = browse("admin").http, f"/w/{desk.workspace_id}"
    wrong = []
    for row in ROWS:
        if row.method != "GET":
            continue
        inner = row.path.replace("/w/{workspace_id:int}", here)
        for path in {_PARAMETER.sub(NINES, each) for each in (row.path, inner) if "{" in each}:
            answer = http.get(ROOT + path)
            if answer.status_code not in {404, 422} or "<h1>" not in answer.text:
                wrong.append(f"{row.path} answers {answer.status_code}")
        for name in ("after", "before", "cursor", "page", "vault", "seen"):
            answer = http.get(f"{ROOT}{_PARAMETER.sub('1', inner)}?{name}={NINES}")
            if answer.status_code >= 500:
                wrong.append(f"{row.path} answers {answer.status_code} to {name}")
    assert wrong == []
    assert http.get(f"{ROOT}{here}/tokens?after={NINES}").status_code == 422
    for digits in (18, 30):
        assert http.get(f"{ROOT}/w/{'9' * digits}/changed").status_code == 404


def judge(person):
    page = Markup(person.html)
    if person.status != 200 or page.broken:
        yield f"answers {person.status}, {page.broken}"
    if len(page.all("h1")) != 1:
        yield f"{len(page.all('h1'))} headings"
    for form in Forms(person.html).found:
        if form.method == "post" and "form_token" not in dict(form.fields):
            yield f"the form of {form.action} has no token"
    if "<script>alert" in person.html:
        yield "a name runs"
    if "\u202e" in _TYPED.sub("", person.html):
        yield "a name turns the reading direction"
    answer = person.http.get(person.url)
    missing = [name for name in HEADERS if name not in answer.headers]
    if missing:
        yield f"without {missing}"
