"""A person's workspaces, invitations, a workspace at a glance, and requests for an organisation."""

import pytest

from custody.server.setup import make_operator
from tests.support import staff
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import ok
from tests.support.onboarding import REQUEST
from tests.support.platform import PASSWORD
from tests.support.service_accounts import create

NO_DEVICE = "and none is registered"


def test_a_glance_has_funds_and_what_waits(funded, browse):
    psbt_id = ok(funded.propose(12_345, description="Invoice of May"))["psbt_id"]
    page = browse("alice").open(f"/console/w/{funded.workspace_id}/")
    page.says("confirmed, in 1 vault", "Invoice of May", "0 of 2, waits for", "Last payments")
    assert NO_DEVICE not in page.words
    ok(funded.tell("cancel-psbt", psbt_id=psbt_id))
    assert "Invoice of May" not in page.open(page.url).words
    admin = browse("admin").open(f"/console/w/{funded.workspace_id}/proposals/{psbt_id}")
    assert admin.facts["Ended"] == "1 Mar 2026, 12:00 UTC"
    admin.open(admin.link("new payment"))


def test_a_section_comes_into_the_menu_with_its_first_use(desk, browse, here):
    def group(path: str = "/") -> dict[str, str]:
        return {
            each: words for each in ("Programs", "Webhooks") for words in menu(path) if each in words.split()
        }

    def menu(path: str) -> list[str]:
        return [each.words for each in browse("admin").open(here + path).page.all("details")]

    assert {words.split()[0] for words in group().values()} == {"More"}
    assert group("/webhooks")["Webhooks"].split()[0] == "Integrations", "where one is"
    ok(create(desk.world, desk.admin))
    assert [words.split()[0] for words in group().values()] == ["Integrations", "More"]


@pytest.fixture
def invite(desk):
    """Invites an address as a signer; the invitation's id."""

    def invite(email):
        sent = ok(staff.invite(desk.admin, email))
        desk.world.deliver_mail()
        return sent["invite_id"]

    return invite


def test_a_newcomer_registers_where_the_mail_leads_with_one_mail_for_the_code(desk, invite):
    path = f"/invitations/{invite('new@example.org')}"
    mails = desk.world.mail
    with asgi_client(desk.world.platform.asgi) as http:
        newcomer = Visitor(http).open(path)
        assert newcomer.url == "/console/register"
        shown = newcomer.page.by_id("email").attributes
        assert (shown["value"], "readonly" in shown) == ("new@example.org", True)
        sent = len(mails.sent)
        newcomer.send("/console/register", password=PASSWORD, again=PASSWORD, email="thief@example.org")
        desk.world.deliver_mail()
        assert [mail.to for mail in mails.sent[sent:]] == ["new@example.org"]
        first = mails.newest_code()
        newcomer.send("/console/sign-in/code", button="another_code", otp="")
        if mails.newest_code() != first:
            newcomer.send("/console/sign-in/code", otp=first, status=401)
        newcomer.send("/console/sign-in/code", otp=mails.newest_code())
        newcomer.send(f"/console{path}", button="accept")
        assert newcomer.url == f"/console/w/{desk.workspace_id}/"
        assert NO_DEVICE in newcomer.words, "what comes next"
        newcomer.open(f"/console{path}", status=404).says("You may have answered it")


def test_who_has_an_account_signs_in_where_the_mail_leads(desk, browse, invite):
    placed = desk.world.organisation("Other", "other@example.org")
    assert placed.workspace_id != desk.workspace_id
    invite_id = invite("other@example.org")
    with asgi_client(desk.world.platform.asgi) as http:
        # As for an address without an account: an inviter sees the link's id, and learns nothing (P39).
        invited = Visitor(http).open(f"/invitations/{invite_id}")
        assert invited.url == "/console/register"
        words = invited.words.replace("other@example.org", "new@example.org")
        assert words == Visitor(http).open(f"/invitations/{invite('new@example.org')}").words
        invited.open(f"/console/sign-in?account=yes&next=/console/invitations/{invite_id}")
        assert invited.page.by_id("email").attributes["value"] == "other@example.org"
    stranger = browse("carol").open(f"/invitations/{invite_id}", status=404)
    stranger.says("sign out, and sign in with that address", "Signed in as carol@example.org")
    person = browse("other").open(f"/invitations/{invite_id}")
    assert "Acme" in person.words
    person.send(f"/console/invitations/{invite_id}", button="accept")
    assert person.url == f"/console/w/{desk.workspace_id}/"


HERE = "/console/onboarding"


def test_a_request_is_shown_back_sent_and_approved_by_an_operator(desk, browse):
    make_operator(desk.world.platform.services, "admin@example.org", is_operator=True)
    asks, decides = browse("alice"), browse("admin")
    asks.open(HERE).send(HERE, **REQUEST)
    assert asks.facts["It moves in a month"] == "10,000 to 100,000 US dollars"
    asks.confirm(HERE)
    actions = [form.attributes["action"] for form in decides.open(HERE).page.all("form")]
    (one,) = [action for action in actions if action.startswith(f"{HERE}/")]
    decides.send(one, button="decision", review_note="Welcome")
    assert decides.facts["Organisation"] == "Prado & Filhas"
    decides.confirm(one)
    assert ("approved" in asks.open(HERE).words, "Welcome" in asks.words) == (True, True)
    assert "Prado & Filhas" in asks.open("/console/").words
