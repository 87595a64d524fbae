"""A person's workspaces, invitations, and a workspace at a glance."""

from custody.server.console import home
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import ok


def test_a_glance_has_funds_and_what_waits(funded, browse):
    ok(funded.propose(12_345, description="Invoice of May"))
    page = browse("alice").open(f"/console/w/{funded.workspace_id}/")
    assert "confirmed, in 1 vault" in page.words
    assert "Invoice of May" in page.words
    assert "0 of 2 signatures" in page.words


def test_of_many_vaults_the_first_are_shown_and_no_sum_is_claimed(desk, browse, monkeypatch):
    monkeypatch.setattr(home, "FIRST", 1)
    ok(desk.create_vault("Reserve"))
    page = browse("admin").open(f"/console/w/{desk.workspace_id}/")
    assert "The first 1 vault. All of them" in page.words
    assert ("Treasury" in page.words) is not ("Reserve" in page.words)
    assert "confirmed, in" not in page.words


def test_an_invitation_is_accepted_where_the_mail_leads(desk, browse):
    roles = ok(desk.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=desk.workspace_id))
    role = next(each for each in roles if each["Name"] == "Signer")
    placed = desk.world.organisation("Other", "other@example.org")
    assert placed.workspace_id != desk.workspace_id
    body = {
        "invited_email": "other@example.org",
        "workspace_context": desk.workspace_id,
        "org_id": 1,
        "role_id": role["RoleId"],
    }
    invite_id = ok(desk.admin.post("/api/v1/invite-to-workspace", body))["invite_id"]
    with asgi_client(desk.world.platform.asgi) as http:
        # Who has the mail's link need not type the address that it was sent to.
        newcomer = Visitor(http).open(f"/invitations/{invite_id}")
        for page in (newcomer.url, newcomer.link("Register first")):
            typed = newcomer.open(f"{page}?next=/invitations/{invite_id}" if "?" not in page else page)
            assert typed.page.by_id("email").attributes["value"] == "other@example.org"
    person = browse("other").open(f"/invitations/{invite_id}")
    assert "Acme" in person.words
    person.send(f"/console/invitations/{invite_id}", button="accept")
    assert person.url == f"/console/w/{desk.workspace_id}/"
    assert "You are a member of Main now." in person.words
