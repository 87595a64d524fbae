"""Hostile requests of strangers and members to the console: forms of another session, cookies, injected text,
malformed requests. Other sites' pages in a real browser: `browser/test_hostile_pages.py`.
"""

import csv
import re

from custody.common.pages.serving import HEADERS
from custody.common.spreadsheets import NEUTRALISED
from custody.server.console.application import ROWS
from tests.support.asgi import asgi_client
from tests.support.console import SAME_SITE, Visitor
from tests.support.console_rows import fields_of, path_of
from tests.support.custody import SHOP, ok
from tests.support.examples import drawn
from tests.support.platform import PASSWORD

FORM = "application/x-www-form-urlencoded"
ELSEWHERE = (
    "https://evil.example", "//evil.example", "/\\evil.example", "/console//evil.example", "/auth/logout",
    "/console/\r\nSet-Cookie: a=b", "/console/?next=https://evil.example", "javascript:alert(1)",
    "/console/../auth", "/console/%2e%2e/auth", "/console/\n",
)  # fmt: skip
FORMULA = "=cmd|' /C calc'!A0"


# --- forms and cookies --------------------------------------------------------------------------------------


def test_p79_a_form_of_another_session_does_nothing_and_keeps_what_was_typed(desk, browse):
    """Two people of one browser: the first one's tab is still open when the second one has signed in."""
    here = f"/console/w/{desk.workspace_id}/workspace"
    first = browse("admin").open(here)
    mine, second = first.form(f"{here}/name"), browse("admin")
    sent = {**dict(mine.fields), "name": "Renamed", "confirmed": "yes", "step_password": PASSWORD}
    answer = second._take(second.http.post(mine.action, data=sent, headers=SAME_SITE), 409)
    assert "This form is of an earlier session. Nothing was done." in answer.words
    assert ("name", "Renamed") in answer.form(mine.action).fields
    assert second.open("/console/").url == first.open("/console/").url == "/console/"
    assert "WORKSPACE_UPDATED" not in desk.world.audit_actions(f"workspace:{desk.workspace_id}")


def test_p79_a_form_with_a_guessed_token_or_none_does_nothing(browse):
    person = browse("admin").open("/console/account")
    for token in ("", "0" * 64, "\N{FULLWIDTH DIGIT ZERO}" * 64):
        assert person.post("/console/sign-out", form_token=token).status_code == 409
    assert person.open("/console/").url == "/console/"


def test_p79_over_https_no_other_host_of_the_domain_sets_or_reads_the_session(desk, monkeypatch):
    monkeypatch.setattr(desk.world.platform.asgi.state, "behind_proxy", True)
    with asgi_client(desk.world.platform.asgi, base_url="https://custody.example.org") as http:
        sent = {"email": "admin@example.org", "password": PASSWORD}
        answer = http.post("/console/sign-in", data=sent, headers=SAME_SITE)
        (cookie,) = answer.headers.get_list("set-cookie")
        name, _, rest = cookie.partition("=")
        attributes = {each.strip().lower() for each in rest.split(";")[1:]}
        assert name == "__Host-custody-session"
        assert {"secure", "httponly", "samesite=strict", "path=/"} <= attributes
        assert not any(each.startswith("domain") for each in attributes)
        assert http.get("/console/").status_code == 200
        # What a sibling can set has another name.
        value = http.cookies["__Host-custody-session"]
        http.cookies.clear()
        http.cookies.set("custody-session", value)
        assert http.get("/console/").headers["location"].startswith("/console/sign-in")


# --- text of others -----------------------------------------------------------------------------------------


def test_p80_no_file_of_the_console_begins_a_cell_with_a_formula(funded, browse):
    desk = funded
    ok(desk.admin.post("/api/v1/update-user-info", {"first_name": FORMULA, "surname": FORMULA}))
    desk.enter(FORMULA, SHOP)
    ok(desk.tell("update-workspace", name=FORMULA, description=FORMULA))
    ok(desk.propose(10_000, description=FORMULA))
    person, base = browse("admin"), f"/console/w/{desk.workspace_id}"
    person.open(f"{base}/audit")
    log = dict(person.form(f"{base}/audit/export").fields)
    vault = f"{base}/vaults/{desk.vault['id']}"
    answers = [person.http.get(path) for path in (
        f"{base}/addresses/export", f"{vault}/movements.csv", f"{vault}/coins.csv", f"{vault}/bsms",
    )] + [person.http.post(f"{base}/audit/export", data=log, headers=SAME_SITE)]  # fmt: skip
    for answer in answers:
        assert answer.status_code == 200
        assert re.fullmatch(r'attachment; filename="[a-z0-9.-]+"', answer.headers["content-disposition"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["content-type"].startswith("text/csv"):
            cells = [cell for row in csv.reader(answer.text.splitlines()) for cell in row]
            # Amounts that leave a vault are figures with a sign.
            begun = [cell for cell in cells if cell.startswith(NEUTRALISED)]
            assert [cell for cell in begun if not re.fullmatch(r"'.*|-[0-9.]+", cell)] == []
    assert FORMULA in answers[0].text


# --- where an answer leads, and what stays ------------------------------------------------------------------


def test_p81_a_sign_in_leads_to_no_other_site_and_writes_no_header(desk):
    sent = {"email": "admin@example.org", "password": PASSWORD}
    with asgi_client(desk.world.platform.asgi) as http:
        for elsewhere in ELSEWHERE:
            page = http.get("/console/sign-in", params={"next": elsewhere})
            fields = Visitor(http, page.text).form("/console/sign-in").fields
            assert ("next", "/console/") in fields, elsewhere
            answer = http.post("/console/sign-in", data={**sent, "next": elsewhere}, headers=SAME_SITE)
            assert answer.headers["location"] == "/console/", elsewhere


def test_p81_a_path_leads_to_no_other_site(desk):
    with asgi_client(desk.world.platform.asgi) as http:
        for path in ("/%0d%0aset-cookie:a=b", "//evil.example/", "/invitations/..%2f..%2fx", "/\\evil"):
            for each in (path, f"/console{path}"):
                answer = http.get(each)
                assert answer.status_code in {303, 404}, each
                assert answer.headers.get("location", "/console").startswith("/console"), each
                assert "a=b" not in answer.headers.get("set-cookie", ""), each


def test_p82_no_answer_is_kept_by_a_browser_or_a_proxy_and_none_is_another_persons(desk, browse):
    person = browse("admin")
    here = f"/console/w/{desk.workspace_id}"
    pages = (f"{here}/addresses/export", f"{here}/changed", "/console/w/999/", "/console/nowhere")
    for path in ("/", "/console", "/console/", "/console/account/x.css", *pages):
        assert person.http.get(path).headers["cache-control"] == "no-store", path
    asset = person.http.get("/console/static/style.css")
    assert (asset.headers["cache-control"], "set-cookie" in asset.headers) == ("no-cache", False)


# --- malformed ----------------------------------------------------------------------------------------------


def test_p83_what_is_no_form_of_ours_is_refused_in_words(desk, browse):
    person = browse("admin")
    token = person.open("/console/account").token
    sign_out = f"form_token={token}"
    part = f'--x\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n{token}\r\n--x--'
    bodies = [
        ("application/json", f'{{"form_token": "{token}"}}'), ("text/plain", sign_out), ("", sign_out),
        ("multipart/form-data; boundary=x", part), (FORM, sign_out + "&a=1" * 2000),
        (FORM, sign_out + "&a=%ff"), (FORM, b"\xff\xfe"), (FORM, sign_out + "&a=%ed%a0%80"),
    ]  # fmt: skip
    for kind, body in bodies:
        headers = {**SAME_SITE, "Content-Type": kind}
        answer = person.http.post("/console/sign-out", content=body, headers=headers)
        assert answer.status_code == 422, (kind, answer.text)
        assert "The console takes its own forms alone" in answer.text
    much = b"a=" + b"x" * 200_000
    headers = {**SAME_SITE, "Content-Type": FORM}
    for body in (much, iter([much])):
        assert person.http.post("/console/sign-out", content=body, headers=headers).status_code == 413
    assert person.open("/console/").url == "/console/"


def test_p83_no_method_stands_for_another(desk, browse):
    person = browse("admin")
    token = person.open("/console/account").token
    over = {**SAME_SITE, "X-HTTP-Method-Override": "POST", "Content-Type": FORM}
    body = f"form_token={token}&_method=POST"
    for method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"):
        answer = person.http.request(method, "/console/sign-out", content=body, headers=over)
        assert answer.status_code == 404, method
    assert person.http.get("/console/sign-out?_method=POST", headers=over).status_code == 404
    assert person.open("/console/").url == "/console/"


STRANGE = ("\x00", "[" * 2000, "9" * 5000)


def test_p83_no_field_and_no_query_ends_in_an_error_of_ours(funded, browse):
    """Every name that a row reads of a form or of the address."""
    desk, person = funded, browse("admin")
    psbt_id = ok(desk.propose(10_000))["psbt_id"]
    ids = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "psbt_id": psbt_id}
    person.open("/console/account")
    desk.world.platform.services.rates.take = lambda *_args, **_named: None
    wrong = []
    for row in ROWS:
        if row.path == "/sign-out":
            continue
        names, path = fields_of(row), path_of(row, **ids)
        for text in drawn(STRANGE, 3, of=f"{row.method} {row.path}"):
            given = dict.fromkeys(names, text)
            if row.method == "GET":
                answer = person.http.get(path, params=given)
            else:
                sure = {"confirmed": "yes", "step_password": PASSWORD}
                answer = person.post(path, **given | sure)
            if answer.status_code >= 500 or any(name not in answer.headers for name in HEADERS):
                wrong.append(f"{row.method} {row.path} answers {answer.status_code} to {text[:8]!r}")
    assert wrong == []
    assert person.open("/console/").url == "/console/"
