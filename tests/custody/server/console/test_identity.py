"""Signing in through an organisation's identity provider: who it signs in and what that reaches (P73), whose
answer is taken (P76), and what is left when it ends or where members have to use it (P77).
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from threading import Barrier, Thread
from urllib.parse import urlsplit

import pytest
from httpx import Response
from sqlalchemy import select

from custody.schemas.auth import REFRESH_COOKIE
from custody.schemas.call import Auth, Call, PermissionName, Way
from custody.schemas.calls import CALLS
from custody.server.calls import make_in_parts
from custody.server.console.application import ROWS
from custody.server.console.proposals import CHANGES
from custody.server.console.table import route
from custody.server.errors import Invalid, RateLimited
from custody.server.people.staff import store_role
from custody.server.rules.credentials import ACCESS_LIFETIME, BOUND_LIFETIME, IDENTITY_FLOW_LIFETIME
from custody.server.rules.roles import EVERY_PERMISSION, RoleTemplate
from custody.server.sign_in import challenges
from custody.server.sign_in.identity_providers import CALLBACK, MAX_OPEN
from custody.server.store.models import IdentityFlowRow, IdentityProviderRow
from custody.server.web import routes
from multisig import Sats
from tests.custody.spec.samples import sample, send
from tests.custody.spec.staging import SAID
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.console_rows import path_of
from tests.support.custody import ok, refused
from tests.support.identity import CLIENT_ID, CLIENT_SECRET, HOST, Scripted, scripted
from tests.support.platform import PASSWORD, As, World, key_offer, open_world, seed
from tests.support.staff import roles

URL = "http://127.0.0.1"
ACCOUNT = "/console/account"
ADMIN, BOB, EVE = "admin@example.org", "bob@example.org", "eve@example.org"


PLACES = ("workspace_id", "workspace_context", "creator_workspace_id", "org_id")


def known(number: int) -> dict[str, object]:
    """What a call may ask for, of the first or the second organisation."""
    places = dict.fromkeys(PLACES, number) | dict.fromkeys(("workspace_uid", "org_uid"), str(number))
    own = {"code": "123456", "m": 1, "plan_hash": "0" * 64, "exposed_keys": ["1"]}
    return SAID | key_offer(seed(1)) | own | places


@dataclass
class Setting:
    """Acme (workspace 1) with its provider; Umbrella (workspace 2), Eve's, of which Bob is a member, too."""

    world: World
    provider: Scripted
    open_browsers: ExitStack
    admin: As
    provider_id: str = ""

    def browser(self) -> Visitor:
        return Visitor(self.open_browsers.enter_context(asgi_client(self.world.platform.asgi, URL)))

    def signed_in(self, email: str) -> Visitor:
        return self.browser().sign_in(email)

    def set(self, **changes) -> dict:
        body = {"workspace_id": 1, "issuer": self.provider.issuer, "client_id": CLIENT_ID, **changes}
        made = ok(self.admin.post("/api/v1/update-identity-provider", body))
        secret = {"workspace_id": 1, "client_secret": CLIENT_SECRET}
        assert ok(self.admin.post("/api/v1/update-identity-provider-secret", secret))["has_secret"]
        self.provider_id = made["provider_id"]
        return made

    def give_eve_one(self) -> None:
        with self.world.platform.services.store.write() as db:
            mine = db.query(IdentityProviderRow).one()
            db.add(
                IdentityProviderRow(
                    id="eves", organisation_id=2, issuer=mine.issuer, client_id=mine.client_id,
                    sealed_secret=mine.sealed_secret, is_required=False, set_by=3, set_at=mine.set_at,
                )
            )  # fmt: skip

    def leave(self, person: Visitor, provider_id: str | None = None) -> dict[str, str]:
        """From the sign-in page to the provider's form; what comes back from there."""
        person.open(f"/console/sign-in?organisation={provider_id or self.provider_id}")
        return self.at_form(person.send("/console/sign-in/organisation"))

    def at_form(self, person: Visitor) -> dict[str, str]:
        (link,) = [each for each in person.page.all("a") if each.attributes["class"] == "button main"]
        return self.provider.authorise(link.attributes["href"])

    def back(
        self, person: Visitor, brought: dict[str, str], status: int = 200, organisation_id: int = 1
    ) -> Visitor:
        answer = person.http.get(f"{CALLBACK}/{organisation_id}", params=brought)
        assert answer.status_code == status, answer.text
        person.html, person.url = answer.text, answer.url.path
        return person

    def through(self, subject: str, status: int = 200) -> Visitor:
        self.provider.subject = subject
        person = self.browser()
        return self.back(person, self.leave(person), status)

    def linking(self, person: Visitor) -> dict[str, str]:
        person.open(ACCOUNT).send("/console/account/identity/link")
        return self.at_form(person.confirm("/console/account/identity/link"))

    def link(self, email: str, subject: str) -> Visitor:
        self.provider.subject = subject
        person = self.signed_in(email)
        return self.back(person, self.linking(person))

    def calls(self, person: Visitor) -> As:
        """The API with the access token of that browser."""
        token = person.http.cookies["custody-session"].split(".")[0]
        return As(self.world.http, {"Authorization": f"Bearer {token}"})


@pytest.fixture
def acme(tmp_path, database) -> Iterator[Setting]:
    with scripted(tmp_path / "provider") as (provider, ca), ExitStack() as stack:
        allowed = f"{HOST}:{urlsplit(provider.issuer).port}"
        settings = {"public_url": URL, "identity_allow": allowed, "identity_ca_file": ca}
        here = {"database_url": database, "resolve": lambda _host: ["127.0.0.1"]}
        world = stack.enter_context(open_world(tmp_path / "state", **here, **settings))
        provider.clock = world.clock
        world.organisation("Acme", ADMIN)
        world.organisation("Umbrella", EVE)
        world.member(1, BOB)
        world.member(2, BOB)
        setting = Setting(world, provider, stack, world.as_user(ADMIN))
        setting.set()
        yield setting


def actions(world: World, chain: str = "workspace:1") -> list[str]:
    return [each for each in world.audit_actions(chain) if each.startswith(("IDENTITY", "SIGN"))]


WORKSPACE = "/w/{workspace_id:int}/"


def test_an_owner_sets_it_a_member_links_and_it_signs_them_in(acme):
    person = acme.signed_in(ADMIN).open("/console/w/1/identity")
    assert CLIENT_SECRET not in person.html
    assert f"{URL}{CALLBACK}/1" in person.words
    assert person.facts["State"] == "in use"
    acme.link(BOB, "bob at login")
    person = acme.through("bob at login")
    person.open("/console/w/1/")
    assert person.url == "/console/w/1/"
    owner = acme.signed_in(ADMIN).open("/console/w/1/identity")
    assert [cells[0] for cells in owner.rows] == [BOB]
    owner.send("/console/w/1/identity/unlink")
    assert actions(acme.world) == [
        "IDENTITY_PROVIDER_SET", "IDENTITY_PROVIDER_SECRET_SET", "IDENTITY_LINKED",
    ]  # fmt: skip
    acme.world.clock.advance(seconds=BOUND_LIFETIME.total_seconds() - 60)
    assert person.open("/console/w/1/").url == "/console/w/1/"
    acme.world.clock.advance(seconds=120 + 15 * 60)
    assert person.open("/console/w/1/").url == "/console/sign-in", "the provider is asked again that day"


def test_p73_a_link_signs_a_member_in_and_no_claim_does(acme):
    acme.provider.claims = {"email": BOB, "email_verified": True, "preferred_username": BOB}
    person = acme.through("mallory", 403)
    assert "no member is linked with you" in person.words
    assert "custody-session" not in person.http.cookies
    assert acme.world.audit_actions()[-1] == "SIGN_IN_REFUSED"
    acme.link(BOB, "bob at login")
    acme.provider.subject = "bob at login"
    other = acme.signed_in(ADMIN)
    acme.back(other, acme.linking(other), 403)
    assert "linked already" in other.words


def test_p73_another_organisations_provider_signs_no_member_in_here(acme, tmp_path):
    """Eve's own provider says that it is Bob, by the subject that Acme's has for him."""
    acme.link(BOB, "bob at login")
    acme.give_eve_one()
    acme.provider.subject = "bob at login"
    person = acme.browser()
    acme.back(person, acme.leave(person, "eves"), 403, 2)
    assert "no member is linked" in person.words
    # What Acme's said is not Eve's provider's answer either, and each browser has its own.
    brought = acme.leave(person)
    acme.leave(person, "eves")
    acme.back(person, brought, 403)
    # Even where Bob links himself there: it opens Umbrella alone.
    bob = acme.signed_in(BOB).open(ACCOUNT)
    bob.post_one("/console/account/identity/link", workspace_id="2", step_password=PASSWORD)
    acme.back(bob, acme.at_form(bob), organisation_id=2)
    acme.back(person, acme.leave(person, "eves"), organisation_id=2)
    assert person.open("/console/w/2/").url == "/console/w/2/"
    assert person.open("/console/w/1/", 404).words


def answers(calls: As, rows: Iterable[Call], known: dict[str, object]) -> Iterator[tuple[Call, Response]]:
    for row in rows:
        yield row, send(calls, row, sample(row, known) if row.shape is not None else {})


def test_p73_its_tokens_open_nothing_but_the_console(acme):
    """No call asks for the second factor again. The console goes on, beyond the life of an access token."""
    acme.link(ADMIN, "owner at login")
    person, wrong = acme.through("owner at login"), []
    rows = [row for row in CALLS if row.needs is not Auth.OPEN]
    for row, answer in answers(acme.calls(person), rows, known(1)):
        if answer.status_code != 403 or "for the console only" not in answer.text:
            wrong.append(f"{row.path} answers {answer.text}")
    assert wrong == []
    assert acme.world.audit_actions().count("PERMISSION_DENIED") == len(rows)
    _, sid, token = person.http.cookies["custody-session"].split(".")
    cookie = {"Cookie": f"{REFRESH_COOKIE}={token}"}
    answer = acme.world.http.post("/auth/refresh", json={"sid": sid}, headers=cookie)
    assert "for the console only" in answer.text
    refused(answer, 401, "UNAUTHENTICATED")
    for _ in range(2):
        assert person.http.get("/console/w/1/changed").status_code == 200
        person.open("/console/w/1/audit").send("/console/w/1/audit/export")
        acme.world.clock.advance(seconds=ACCESS_LIFETIME.total_seconds())
        person.open("/console/w/1/members")


# What a session of a provider may do without the member's own second factor: propose, withdraw what waits,
# stop money, hand in what others signed, send again what was sent.
PROPOSING = frozenset(
    {
        "audit/export", "changes/decline", "members/revoke", "proofs/new", "proposals/forward",
        "proposals/new", "vaults/new",
        "vaults/{vault_id}/coins/aside", "vaults/{vault_id}/consolidate",
        "vaults/{vault_id}/freeze", "vaults/{vault_id}/replace/sweep",
        *(f"proposals/{{psbt_id}}/{each}" for each in (*CHANGES, "cancel", "release")),
        "tokens/new", "tokens/{contract_uid:int}/call/{function}",
        "tokens/{contract_uid:int}/calls/{call_uid:int}/resubmit",
        "webhooks/{webhook_id}/test", "webhooks/{webhook_id}/redeliver",
    }
)  # fmt: skip


def test_p73_without_its_members_own_proof_it_proposes_and_no_more(acme):
    """The whole table of the console, by an owner: no form but those above acts."""
    acme.link(ADMIN, "owner at login")
    person, acted = acme.through("owner at login").open("/console/w/1/leave"), []

    def act(page):
        acted.append(page.request.url.path)
        return page.redirect("/console/")

    rows = [row for row in ROWS if row.method == "POST" and row.path.startswith(WORKSPACE)]
    mounted = acme.world.platform.asgi.router.routes[-1].app
    mounted.router.routes[:0] = [route(replace(row, view=act, again=None, review=None)) for row in rows]
    done = set()
    for row in rows:
        person.post(path_of(row), confirmed="yes")
        if acted:
            done.add(row.path.removeprefix(WORKSPACE))
            acted.clear()
    assert sorted(done) == sorted(PROPOSING)
    person.open("/console/w/1/members")
    person.post_one("/console/w/1/members/add", confirmed="yes", step_password=PASSWORD)
    assert acted == ["/console/w/1/members/add"]


def test_p73_its_session_reaches_its_organisation_and_nothing_else(acme, monkeypatch):
    """The whole table of the calls that the console makes, and of the console."""
    caller_of = lambda request, _snapshot: acme.world.caller(request.state.token)  # noqa: E731
    monkeypatch.setattr(routes, "_caller_of", caller_of)
    acme.link(BOB, "bob at login")
    acme.world.member(1, "other@example.org")
    person = acme.through("bob at login")
    calls, wrong = acme.calls(person), []
    rows = [row for row in CALLS if row.needs is not Auth.OPEN and Way.BOUND not in row.open_to]
    for row, answer in answers(calls, rows, known(2)):
        if answer.status_code != (403 if row.needs is Auth.SIGNED_IN else 404):
            wrong.append(f"{row.path} answers {answer.text}")
    assert wrong == []
    shown = str(ok(calls.get("/api/v1/get-user-info")))
    assert "Acme" in shown
    assert "Umbrella" not in shown
    person.open("/console/w/1/leave")
    filled = {"confirmed": "yes", "workspace_id": "2", "step_password": PASSWORD}
    for row in ROWS:
        if row.is_open or row.path in {"/", "/sign-out"}:
            continue
        path = path_of(row, workspace_id=2)
        answer = person.http.get(path) if row.method == "GET" else person.post(path, **filled)
        if answer.status_code not in {403, 404}:
            wrong.append((row.path, answer.status_code))
    assert wrong == []


class TestAnswers:
    """P76: each answer counts once, in the browser that was led away, for the provider that it was led to."""

    def test_p76_of_another_browser_or_twice(self, acme):
        acme.link(BOB, "bob at login")
        mallory, victim = acme.browser(), acme.browser()
        brought = acme.leave(mallory)
        held = dict(mallory.http.cookies)
        assert "another browser" in acme.back(victim, brought, 403).words
        acme.leave(victim)
        assert "another browser" in acme.back(victim, brought, 403).words
        acme.back(mallory, brought)
        mallory.http.cookies.delete("custody-session")
        acme.back(mallory, brought, 403)
        # The cookie alone brings no second session.
        mallory.http.cookies.clear()
        mallory.http.cookies.update({"custody-leaving": held["custody-leaving"]})
        assert "was finished" in acme.back(mallory, brought, 403).words
        assert acme.world.audit_actions().count("SIGNED_IN") == 3

    def test_p76_what_is_no_answer_to_ours_is_late_or_has_a_forged_token(self, acme):
        person = acme.browser()
        for change, words in (
            ({"iss": "https://accounts.example.com"}, "another provider's"),
            ({"iss": ""}, "another provider's"),
            ({"error": "access_denied", "code": ""}, "it says access_denied"),
            ({"error": "<b>x</b>", "code": ""}, "did not sign you in."),
            ({"code": "made up"}, "refused its own code"),
            ({"state": ""}, "another browser"),
        ):
            assert words in acme.back(person, {**acme.leave(person), **change}, 403).words
        brought = acme.leave(person)
        acme.provider.claims = {"nonce": "another"}
        assert "not genuine" in acme.back(person, brought, 403).words
        brought = acme.leave(person)
        acme.world.clock.advance(seconds=IDENTITY_FLOW_LIFETIME.total_seconds())
        assert "took too long" in acme.back(person, brought, 403).words

    def test_p76_a_provider_that_leads_on_to_another_organisations_gets_no_code(self, acme):
        """Eve's leads Bob's browser to Acme's form, with Acme's client and what Eve's own is to bring back.
        Acme's provider sends him to Acme's address.
        """
        acme.give_eve_one()
        person = acme.browser()
        brought = acme.leave(person, "eves")
        assert "another organisation's" in acme.back(person, brought, 403).words
        acme.back(person, brought, 403, 2)
        assert "/token" not in acme.provider.asked

    def test_p76_a_link_is_of_whom_the_provider_asked_just_now(self, acme):
        person = acme.signed_in(BOB)
        acme.provider.claims = {"auth_time": int(acme.world.clock().timestamp()) - 61}
        assert "Sign out there, and link again" in acme.back(person, acme.linking(person), 403).words
        acme.provider.claims = {}
        person.open(ACCOUNT).send("/console/account/identity/link")
        acme.back(person, acme.at_form(person))

    def test_p76_a_link_leads_nobody_into_a_strangers_organisation_unseen(self, acme):
        acme.link(BOB, "bob at login")
        person = acme.browser().open(f"/console/sign-in?organisation={acme.provider_id}")
        assert ("Acme" in person.words, HOST in person.words) == (True, True)
        acme.back(person, acme.leave(person)).open("/console/").send("/console/sign-out")
        assert "Sign in through it" not in person.open("/console/sign-in").words
        # The code that was typed is remembered, also where it is used again.
        typed = {"organisation": acme.provider_id}
        for _ in range(2):
            person.open("/console/sign-in").send("/console/sign-in/organisation", **typed)
            acme.back(person, acme.at_form(person)).open("/console/").send("/console/sign-out")
            assert "Acme" in person.open("/console/sign-in").words
        victim = acme.signed_in(ADMIN)
        for minutes in (0, 20):
            acme.world.clock.advance(minutes=minutes)
            victim.open(f"/console/sign-in?organisation={acme.provider_id}")
            victim.send("/console/sign-in/organisation", status=409)
            assert "Sign out first" in victim.words
        assert victim.open("/console/account").url == "/console/account"


class TestEnds:
    """P77: what the provider opened ends with it; nobody is locked out."""

    def opened(self, acme) -> Visitor:
        acme.link(BOB, "bob at login")
        return acme.through("bob at login")

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("remove-identity-provider", {}),
            ("update-identity-provider", {"issuer": "https://login.example.org/new", "client_id": CLIENT_ID}),
            ("unlink-identity", {"user_uuid": 3}),
            ("remove-user-from-workspace", {"user_uuid": 3}),
        ],
    )
    def test_p77_sessions_end_with_what_made_them(self, acme, path, body):
        bob = self.opened(acme)
        assert bob.open("/console/").url == "/console/"
        person = acme.browser()
        brought = acme.leave(person)
        ok(acme.admin.post(f"/api/v1/{path}", {"workspace_id": 1, **body}))
        assert bob.open("/console/").url == "/console/sign-in"
        acme.back(person, brought, 403)
        assert "custody-session" not in person.http.cookies

    def test_p77_linked_and_unlinked_at_once(self, acme):
        """Whichever is first: no session without a link."""
        acme.link(BOB, "bob at login")
        person, start = acme.browser(), Barrier(2)
        brought, answers = acme.leave(person), []

        def finish():
            start.wait()
            answers.append(person.http.get(f"{CALLBACK}/1", params=brought).status_code)

        thread = Thread(target=finish)
        thread.start()
        start.wait()
        ok(acme.admin.post("/api/v1/unlink-identity", {"workspace_id": 1, "user_uuid": 3}))
        thread.join(60)
        assert answers[0] in {200, 403}
        if answers[0] == 200:
            assert person.open("/console/").url == "/console/sign-in"

    def test_p77_removed_while_the_code_is_redeemed(self, acme):
        acme.link(BOB, "bob at login")
        person = acme.browser()
        brought = acme.leave(person)
        make = acme.provider.token

        def late(claims):
            ok(acme.admin.post("/api/v1/remove-identity-provider", {"workspace_id": 1}))
            return make(claims)

        acme.provider.token = late
        assert "changed its identity provider meanwhile" in acme.back(person, brought, 403).words

    def test_p77_an_ended_session_links_no_account(self, acme):
        person = acme.signed_in(BOB)
        brought = acme.linking(person)
        person.open(ACCOUNT).send("/console/sign-out")
        assert "not signed in any more" in acme.back(person, brought, 403).words

    def test_p77_where_it_is_required_owners_and_signers_programs_get_in(self, acme):
        bob, signer = acme.signed_in(BOB), acme.world.as_user(BOB)
        ok(signer.get("/api/v1/list-wallets", workspace_id=1))
        acme.set(is_required=True)
        assert "sign in through its identity provider" in bob.open("/console/w/1/", 403).words
        refused(signer.get("/api/v1/get-my-limits", workspace_id=1), 403, "PERMISSION_DENIED")
        ok(signer.get("/api/v1/second-person-rule", workspace_id=2))
        ok(signer.get("/api/v1/list-wallets", workspace_id=1))
        acme.signed_in(ADMIN).open("/console/w/1/")
        acme.link(BOB, "bob at login")
        acme.through("bob at login").open("/console/w/1/")
        # Without its secret it is not required.
        body = {"workspace_id": 1, "issuer": "https://login.example.org/new", "client_id": CLIENT_ID}
        ok(acme.admin.post("/api/v1/update-identity-provider", {**body, "is_required": True}))
        bob.open("/console/w/1/")

    def test_p77_two_people_remove_it_where_the_second_is_no_owner(self, acme):
        """By passwords, on the console: the provider is dead, and the rule's role has not all permissions."""
        clerk = RoleTemplate("Clerk", "", EVERY_PERMISSION - {PermissionName.VIEW_LOGS}, Sats(0))
        with acme.world.platform.services.store.write() as db:
            store_role(db, acme.world.clock(), 1, clerk)
        acme.world.member(1, "cleo@example.org", "Clerk")
        acme.world.member(1, "dan@example.org", "Clerk")
        rule = {"workspace_id": 1, "is_on": True, "cooling_off_hours": 0}
        rule |= {"confirming_role_id": roles(acme.admin)["Clerk"]["RoleId"]}
        acme.set(is_required=True)
        ok(acme.admin.post("/api/v1/update-second-person-rule", rule))
        path, wanted = "/api/v1/remove-identity-provider", {"workspace_id": 1}
        asked = {"workspace_id": 1, "path": path, "body": wanted}
        change = {"change_id": ok(acme.admin.post("/api/v1/request-change", asked))["change_id"]}
        assert "its identity provider" in acme.signed_in(BOB).open("/console/w/1/changes", 403).words
        cleo = acme.signed_in("cleo@example.org")
        cleo.open("/console/w/1/proposals", 403)
        cleo.open("/console/w/1/changes").post_one("/console/w/1/changes/confirm", **change)
        cleo.confirm("/console/w/1/changes/confirm")
        acme.signed_in(BOB).open("/console/w/1/proposals")

    def test_p77_tries_of_a_providers_session_block_no_sign_in(self, acme):
        """However many sessions it opens: they have tries of their own, once."""
        acme.link(ADMIN, "owner at login")
        make = partial(make_in_parts, acme.world.platform.services)

        def signed_in():
            tokens = [acme.through("owner at login").http.cookies["custody-session"] for _ in range(2)]
            return [acme.world.caller(each.split(".")[0]) for each in tokens]

        callers = signed_in()
        for number in range(10):
            with pytest.raises(Invalid):
                make(callers[number % 2], challenges.prove_by_password("wrong"))
        with pytest.raises(RateLimited):
            make(callers[0], challenges.prove_by_password(PASSWORD))
        # It ends all other sessions.
        ok(acme.admin.post("/auth/two-factor", {"enabled": True, "password": PASSWORD}))
        callers = signed_in()
        asked = [make(callers[number % 2], challenges.ask_for_proof()).token_2fa for number in range(20)]
        with pytest.raises(RateLimited):
            make(callers[0], challenges.ask_for_proof())
        for number in range(20):
            with pytest.raises(Invalid):
                make(callers[number // 5 % 2], challenges.prove_by_code(asked[number // 5], "wrong"))
        with pytest.raises(RateLimited):
            make(callers[0], challenges.prove_by_code(asked[4], acme.world.mail.newest_code()))
        token = ok(acme.world.login(ADMIN))["token_2fa"]
        code = {"token_2fa": token, "otp": acme.world.mail.newest_code()}
        assert ok(acme.world.http.post("/auth/otp-validate", json=code))["token"]

    def test_p77_one_that_does_not_answer_is_told_in_words(self, acme):
        acme.provider.discovery["issuer"] = "https://other.example"
        person = acme.browser().open(f"/console/sign-in?organisation={acme.provider_id}")
        person.send("/console/sign-in/organisation", status=503)
        assert "sign in with your own password" in person.words

    def test_p77_of_a_thousand_sign_ins_under_way_the_oldest_gives_way(self, acme):
        person, now = acme.browser(), acme.world.clock()
        with acme.world.platform.services.store.write() as db:
            for number in range(MAX_OPEN):
                flow = IdentityFlowRow(token_hash=b"%d" % number, provider_id=acme.provider_id, target="/")
                flow.expires_at = now + timedelta(minutes=5, microseconds=number)
                db.add(flow)
        brought = acme.leave(person)
        with acme.world.platform.services.store.read() as db:
            under_way = set(db.scalars(select(IdentityFlowRow.token_hash)))
        assert len(under_way) == MAX_OPEN
        assert b"0" not in under_way
        acme.back(person, brought, 403)

    def test_its_address_is_public_and_nobody_else_unlinks_an_owner(self, acme):
        for issuer in (
            "https://x.example.org?a=b", "http://login.example.com", "https://localhost", "https://10.0.0.1"
        ):  # fmt: skip
            body = {"workspace_id": 1, "issuer": issuer, "client_id": "x"}
            refused(acme.admin.post("/api/v1/update-identity-provider", body), 422, "VALIDATION")
        answer = acme.world.as_user(BOB).post("/api/v1/unlink-identity", {"workspace_id": 1, "user_uuid": 1})
        refused(answer, 403, "PERMISSION_DENIED")
