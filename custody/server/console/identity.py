"""An organisation's identity provider: signing in through it, linking an account to it, and its settings."""

from typing import Final

from starlette.responses import Response

from custody.schemas.identity_providers import (
    IDENTITY_LINKS,
    IDENTITY_PROVIDER,
    REMOVE_IDENTITY_PROVIDER,
    UNLINK_IDENTITY,
    UPDATE_IDENTITY_PROVIDER,
    UPDATE_IDENTITY_PROVIDER_SECRET,
    IdentityProvider,
)
from custody.schemas.users import Organisation
from custody.server.console import session
from custody.server.console.context import PageContext
from custody.server.console.sign_in import sign_in_page, target_of
from custody.server.console.table import Review, Row, form
from custody.server.errors import Invalid, StateConflict, TokenExpired, Unauthenticated
from custody.server.rules.credentials import IDENTITY_FLOW_LIFETIME
from custody.server.sign_in import identity
from custody.server.sign_in.identity import ProviderCallback, ProviderRedirect

ACCOUNT: Final = "/console/account"
# How long a browser offers the provider whose code was typed last.
REMEMBERED_SECONDS: Final = 365 * 24 * 3600

# --- signing in ---------------------------------------------------------------------------------------------


def begin(page: PageContext) -> Response:
    """Raises StateConflict for a person who is signed in: the provider's session would replace theirs, and
    the request that comes back from the provider does not carry it (`SameSite=Strict`).
    """
    page.admit()
    _require_signed_out(page)
    provider_id = page.form.one("organisation").strip()
    is_typed = page.form.ticked("typed") or provider_id == session.cookie(page.request, "organisation")
    leaving = page.make_in_parts(identity.begin(provider_id, target_of(page)))
    return _leave(page, leaving, provider_id if is_typed else "")


def _require_signed_out(page: PageContext) -> None:
    if page.held is None:
        return
    try:
        _, page.held = session.authenticate(page.services, page.request, page.held, page.snapshot)
    except (Unauthenticated, TokenExpired):
        return
    raise StateConflict("You are signed in already. Sign out first, then sign in through your organisation.")


def _leave(page: PageContext, leaving: ProviderRedirect, provider_id: str) -> Response:
    """Through a page of ours: a form may not submit elsewhere. ``provider_id``: what the browser remembers
    afterwards; empty for a code that a link contained.
    """
    response = page.render("identity/onward.html", url=leaving.url, words=f"You go on to {leaving.issuer}.")
    value = f"{leaving.token}.{provider_id}"
    session.set_lax_cookie(
        page.request, response, "leaving", value, int(IDENTITY_FLOW_LIFETIME.total_seconds())
    )
    return response


def callback(page: PageContext) -> Response:
    """Through a page of ours again: a request that another site caused carries no session."""
    page.admit()
    token, _, provider_id = session.cookie(page.request, "leaving").partition(".")
    back = ProviderCallback(page.query("state"), page.query("code"), page.query("error"), page.query("iss"))
    organisation_id = page.path_param("organisation_id")
    arrived = page.make_in_parts(identity.finish(organisation_id, token, back))
    tokens = arrived.tokens
    words = "Your account is linked." if tokens is None else "You are signed in."
    response = page.render("identity/onward.html", url=arrived.target, words=words)
    session.set_lax_cookie(page.request, response, "leaving", "", 0)
    if provider_id:
        session.set_lax_cookie(page.request, response, "organisation", provider_id, REMEMBERED_SECONDS)
    if tokens is not None:
        held = session.BrowserSession(tokens.token, tokens.sid, tokens.refresh_token)
        held.keep(page.request, response)
    return response


# --- one's own link -----------------------------------------------------------------------------------------


def _own_workspace(page: PageContext) -> int:
    """The workspace that the form names. Raises Invalid where the person is not in it."""
    wanted = page.number("workspace_id")
    if any(each.id == wanted for each in page.workspaces):
        return wanted
    raise Invalid.at("/workspace_id", "You are in no such workspace.")


def link(page: PageContext) -> Response:
    provider = page.read(IDENTITY_PROVIDER, workspace_id=_own_workspace(page))
    provider_id = provider.provider_id or ""
    leaving = page.make_in_parts(identity.begin(provider_id, ACCOUNT, is_linking=True))
    return _leave(page, leaving, provider_id)


def providers(page: PageContext) -> list[tuple[Organisation, int, IdentityProvider]]:
    """Of the person's organisations, each with one of its workspaces."""
    found = []
    for organisation in page.user.organisations_info.organisations:
        workspace_id = organisation.workspaces.workspaces[0].workspace_info.uid
        provider = page.read(IDENTITY_PROVIDER, workspace_id=workspace_id)
        if provider.has_secret:
            found.append((organisation, workspace_id, provider))
    return found


def unlink(page: PageContext) -> Response:
    page.act(UNLINK_IDENTITY, workspace_id=_own_workspace(page))
    return page.redirect(ACCOUNT, "The identity provider no longer signs you in.")


# --- the organisation's -------------------------------------------------------------------------------------


def provider_page(page: PageContext) -> Response:
    workspace = page.workspace
    provider = page.read(IDENTITY_PROVIDER, workspace_id=workspace.id)
    links = page.read(IDENTITY_LINKS, workspace_id=workspace.id)
    return page.render("identity/provider.html", provider=provider, links=links)


def _typed(page: PageContext) -> dict[str, str]:
    return {name: page.form.one(name).strip() for name in ("issuer", "client_id")}


def review_unlinking(page: PageContext) -> Review:
    wanted = page.number("user_uuid")
    for each in page.read(IDENTITY_LINKS, workspace_id=page.workspace.id):
        if each.user_uuid == wanted:
            facts = (("Member", each.email),)
            warning = "Sessions through the link end. Their programs continue: revoke them under Programs."
            return Review("Unlink this member?", facts, "Unlink", warning)
    raise Invalid.at("/user_uuid", "Choose one of the list.")


_HERE = "/w/{workspace_id:int}/identity"
ROWS = (
    Row("POST", "/sign-in/organisation", begin, again=sign_in_page, is_open=True),
    Row("GET", "/sign-in/organisation/callback/{organisation_id:int}", callback, is_open=True),
    Row("POST", "/account/identity/link", link, steps_up=True),
    Row("POST", "/account/identity/unlink", unlink, steps_up=True, acts=(UNLINK_IDENTITY,)),
    Row("GET", _HERE, provider_page),
    form(
        _HERE + "/set", UPDATE_IDENTITY_PROVIDER, provider_page, "The identity provider is set.",
        asks="Set it", steps_up=True, given=_typed,
        warns="Another issuer or client is another provider: links and sessions of the current one end.",
    ),
    form(
        _HERE + "/secret", UPDATE_IDENTITY_PROVIDER_SECRET, provider_page,
        "The secret is kept, and never shown again.", steps_up=True,
        given=lambda page: {"client_secret": page.form.one("client_secret").strip()},
    ),
    form(
        _HERE + "/remove", REMOVE_IDENTITY_PROVIDER, provider_page, "The identity provider is removed.",
        asks="Remove", steps_up=True,
        warns="Its sessions and links end. Members sign in with their own passwords from then on.",
    ),
    form(
        _HERE + "/unlink", UNLINK_IDENTITY, provider_page, "The member is unlinked. Their programs continue.",
        review=review_unlinking, steps_up=True,
    ),
)  # fmt: skip
