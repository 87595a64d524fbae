"""Signing in through an organisation's identity provider (OpenID Connect): a browser is redirected there and
back once.
A provider's subject means a member only because that member linked it, signed in with their own password: a
claim of the provider's, such as an e-mail address, never decides (P73). The session is bound to the
organisation.
"""

import hmac
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode, urlsplit

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.credentials import IDENTITY_FLOW_LIFETIME, Caller, new_token, token_hash
from custody.server.domain.errors import (
    IdentityRefused,
    NotFound,
    PermissionDenied,
    StateConflict,
)
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.secrets import ClientSecrets
from custody.server.service.sign_in.accounts import record_about
from custody.server.service.sign_in.id_tokens import Expected, base64url
from custody.server.service.sign_in.providers import Client, Providers
from custody.server.service.sign_in.sessions import Sessions, Tokens, end_bound_sessions
from custody.server.service.stored_vaults import place_of
from custody.server.store import Store
from custody.server.store.models import (
    IdentityFlow,
    IdentityLink,
    IdentityProvider,
    Membership,
    Organisation,
    SignInSession,
    User,
    Workspace,
)

CALLBACK: Final = "/console/sign-in/organisation/callback"
# For each provider. A flow is a row until its browser is back, it expires, or this many began after it.
MAX_OPEN: Final = 1_000
# In the owner's list of sessions.
DEVICE: Final = "Console, through an identity provider"


@dataclass(frozen=True)
class ProviderRedirect:
    """``url``: where the browser is redirected. ``token``: its cookie until it is back."""

    url: str
    issuer: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class ProviderCallback:
    """The parameters of a provider's redirect (RFC 6749, section 4.1.2, and RFC 9207)."""

    state: str
    code: str = field(repr=False)
    error: str
    issuer: str


@dataclass(frozen=True)
class IdentityResult:
    """``tokens``: of the new session; None where an account was linked."""

    target: str
    tokens: Tokens | None


class IdentitySignIn:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        sessions: Sessions,
        secrets: ClientSecrets,
        providers: Providers,
        public_url: str | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._sessions = sessions
        self._secrets = secrets
        self._providers = providers
        self._public_url = public_url

    def issuer(self, provider_id: str) -> str | None:
        """The provider's issuer; None where it is unknown or has no secret yet."""
        with self._store.read() as db:
            found = db.get(IdentityProvider, provider_id)
            return None if found is None or found.sealed_secret is None else found.issuer

    def begin(self, provider_id: str, target: str, session: Caller | None = None) -> ProviderRedirect:
        """Begins a redirect to the provider: to sign in, or to link the user of ``session``. ``target``: the
        path to continue at.

        Raises NotFound, StateConflict, PermissionDenied (to link: no member, or signed in by a provider),
        ProviderUnavailable.
        """
        with self._store.read() as db:
            provider = db.get(IdentityProvider, provider_id)
            if provider is None:
                raise NotFound("No organisation has this code any more: ask yours for the newest one.")
            redirect_uri = redirect_uri_of(self._public_url, provider.organisation_id)
            if provider.sealed_secret is None or redirect_uri is None:
                raise StateConflict("This identity provider is not ready: its owner has to enter its secret.")
            if session is not None and (
                session.bound_to is not None or not _is_member(db, provider, session.user_id)
            ):
                raise PermissionDenied("A member links their own account, signed in with their own password.")
        published = self._providers.published(provider)
        token, now = new_token(self._random), self._clock()
        with self._store.write() as db:
            db.execute(delete(IdentityFlow).where(IdentityFlow.expires_at <= now))
            # The oldest flows are dropped: if new ones were refused, one visitor could lock out all members.
            of_it = select(IdentityFlow.token_hash).where(IdentityFlow.provider_id == provider.id)
            newest = of_it.order_by(IdentityFlow.expires_at.desc()).offset(MAX_OPEN - 1)
            db.execute(delete(IdentityFlow).where(IdentityFlow.token_hash.in_(newest)))
            db.add(
                IdentityFlow(
                    token_hash=token_hash(token),
                    provider_id=provider.id,
                    session_id=None if session is None else session.session_id,
                    target=target,
                    expires_at=now + IDENTITY_FLOW_LIFETIME,
                )
            )
        asked = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid",
            "state": _of(token, "state"),
            "nonce": _of(token, "nonce"),
            "code_challenge": base64url(sha256(_of(token, "verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        if session is not None:
            # The person signs in there anew, so that the last user of that browser is not linked by mistake.
            # `max_age` makes the token say when that was (OpenID Connect Core, section 2).
            asked |= {"prompt": "login", "max_age": "0"}
        start = published.authorization_endpoint
        return ProviderRedirect(
            f"{start}{'&' if '?' in start else '?'}{urlencode(asked)}", provider.issuer, token
        )

    def finish(
        self, organisation_id: int, token: str, back: ProviderCallback, trace_id: str
    ) -> IdentityResult:
        """``organisation_id``: from the redirect address. Each redirect works once.
        Raises IdentityRefused with a sentence for the person, and ProviderUnavailable.
        """
        if not hmac.compare_digest(_of(token, "state").encode(), back.state.encode()):
            raise IdentityRefused("This answer belongs to another browser, or to an earlier try.")
        flow, provider = self._take(token)
        # Mix-up attack (RFC 9700, section 4.4.2): a provider may redirect the browser to another
        # organisation's provider, to obtain its code.
        if provider.organisation_id != organisation_id:
            raise IdentityRefused("This answer is another organisation's.")
        published = self._providers.published(provider)
        # RFC 9207, section 2.4: the response must be this provider's.
        if back.issuer != provider.issuer and (back.issuer or published.names_issuer):
            raise IdentityRefused("This answer is another provider's.")
        if back.error or not back.code:
            raise IdentityRefused(f"The identity provider did not sign you in{_plain(back.error)}.")
        secret = None if provider.sealed_secret is None else self._secrets.open(provider.sealed_secret)
        redirect_uri = redirect_uri_of(self._public_url, provider.organisation_id)
        if secret is None or redirect_uri is None:
            raise IdentityRefused("The provider's secret cannot be read: an owner has to enter it again.")
        client = Client(provider.client_id, secret, redirect_uri)
        id_token = self._providers.redeem(provider, client, back.code, _of(token, "verifier"))
        since = None if flow.session_id is None else flow.expires_at - IDENTITY_FLOW_LIFETIME
        expected = Expected(provider.issuer, provider.client_id, _of(token, "nonce"), since)
        subject = self._providers.subject(provider, id_token, expected)
        if flow.session_id is not None:
            self._link(flow, flow.session_id, subject, trace_id)
            return IdentityResult(flow.target, None)
        return IdentityResult(flow.target, self._open(flow, subject, trace_id))

    def _take(self, token: str) -> tuple[IdentityFlow, IdentityProvider]:
        """Raises IdentityRefused."""
        with self._store.write() as db:
            flow = db.get(IdentityFlow, token_hash(token), with_for_update=True)
            if flow is None or flow.expires_at <= self._clock():
                raise IdentityRefused("This sign-in was finished, or took too long.")
            db.delete(flow)
            return flow, _still(db, flow)

    def _open(self, flow: IdentityFlow, subject: str, trace_id: str) -> Tokens:
        with self._store.write() as db:
            provider = _still(db, flow)
            wanted = (IdentityLink.provider_id == provider.id, IdentityLink.subject == subject)
            link = db.scalars(select(IdentityLink).where(*wanted)).one_or_none()
            user = None if link is None else db.get_one(User, link.user_id)
            if link is not None and user is not None and _is_member(db, provider, user.id):
                link.last_used_at = self._clock()
                proof = f"through the identity provider of organisation {provider.organisation_id}"
                record_about(self._audit, db, user, "SIGNED_IN", trace_id, proof)
                return self._sessions.open(db, user, DEVICE, None, bound_to=provider.organisation_id)
            said = f"identity provider of organisation {provider.organisation_id}, no member is linked"
            record_about(self._audit, db, None, "SIGN_IN_REFUSED", trace_id, said)
        raise IdentityRefused(
            "The provider knows you, and no member is linked with you. Sign in with your password, and "
            "link your account under Your account."
        )

    def _link(self, flow: IdentityFlow, session_id: int, subject: str, trace_id: str) -> None:
        """Raises IdentityRefused."""
        with self._store.write() as db:
            provider, session = _still(db, flow), db.get(SignInSession, session_id)
            if session is None or session.revoked_at is not None:
                raise IdentityRefused(
                    "You are not signed in any more: sign in with your password, then link."
                )
            if not _is_member(db, provider, session.user_id):
                raise IdentityRefused("You are no member of this organisation any more.")
            known = select(IdentityLink.id).where(IdentityLink.provider_id == provider.id)
            if db.scalar(known.where(IdentityLink.subject == subject)) is not None:
                raise IdentityRefused("This account of the provider's is linked already.")
            if link_of(db, provider, session.user_id) is not None:
                raise IdentityRefused("Your account is linked already: unlink it first.")
            now = self._clock()
            db.add(
                IdentityLink(provider_id=provider.id, user_id=session.user_id, subject=subject, linked_at=now)
            )
            db.flush()
            user = db.get_one(User, session.user_id)
            caller = Caller(user.id, session.id, user.email, trace_id)
            first = select(func.min(Workspace.id)).where(
                Workspace.organisation_id == provider.organisation_id
            )
            said, place = f"user {user.id} at {provider.issuer}", place_of(db, db.scalar(first) or 0)
            self._audit.record(db, caller, Category.PEOPLE, "IDENTITY_LINKED", said, access=place)


def redirect_uri_of(public_url: str | None, organisation_id: int) -> str | None:
    """The redirect URI of an organisation's identity provider: one for each organisation, so that another
    provider's code is recognised (RFC 9700, section 4.4.2.2). Providers compare each character (section 2.1).
    """
    parts = urlsplit(public_url or "")
    return f"{parts.scheme}://{parts.netloc}{CALLBACK}/{organisation_id}" if parts.netloc else None


def organisation_of(db: Session, provider_id: str) -> str | None:
    """The name of the organisation that has this provider."""
    query = select(Organisation.name).join(
        IdentityProvider, IdentityProvider.organisation_id == Organisation.id
    )
    return db.scalar(query.where(IdentityProvider.id == provider_id))


def provider_of(db: Session, organisation_id: int) -> IdentityProvider | None:
    query = select(IdentityProvider).where(IdentityProvider.organisation_id == organisation_id)
    return db.scalars(query).one_or_none()


def link_of(db: Session, provider: IdentityProvider, user_id: int) -> IdentityLink | None:
    wanted = (IdentityLink.provider_id == provider.id, IdentityLink.user_id == user_id)
    return db.scalars(select(IdentityLink).where(*wanted)).one_or_none()


def end_provider(db: Session, organisation_id: int, now: datetime) -> int:
    """Deletes the provider, its links and flows, and ends the sessions that it opened; returns their
    number.
    """
    provider = provider_of(db, organisation_id)
    if provider is None:
        return 0
    db.execute(delete(IdentityLink).where(IdentityLink.provider_id == provider.id))
    db.execute(delete(IdentityFlow).where(IdentityFlow.provider_id == provider.id))
    db.delete(provider)
    db.flush()
    return end_bound_sessions(db, organisation_id, now)


def end_link(db: Session, organisation_id: int, user_id: int, now: datetime) -> bool:
    """Deletes a member's link and ends its sessions. Returns whether there was one."""
    provider = provider_of(db, organisation_id)
    link = None if provider is None else link_of(db, provider, user_id)
    if link is None:
        return False
    db.delete(link)
    db.flush()
    end_bound_sessions(db, organisation_id, now, user_id)
    return True


def _still(db: Session, flow: IdentityFlow) -> IdentityProvider:
    """Raises IdentityRefused."""
    provider = db.get(IdentityProvider, flow.provider_id, populate_existing=True)
    if provider is None:
        raise IdentityRefused("The organisation changed its identity provider meanwhile.")
    return provider


def _is_member(db: Session, provider: IdentityProvider, user_id: int) -> bool:
    query = (
        select(Membership.id)
        .join(Workspace, Workspace.id == Membership.workspace_id)
        .where(Membership.user_id == user_id, Workspace.organisation_id == provider.organisation_id)
    )
    return db.scalars(query.limit(1)).first() is not None


def _of(token: str, purpose: str) -> str:
    """A secret of a flow, derived from the browser's token, so that none is stored."""
    return base64url(hmac.digest(token.encode(), purpose.encode(), "sha256"))


def _plain(error: str) -> str:
    """The error, if it looks like a code of RFC 6749 or OpenID Connect."""
    is_code = 0 < len(error) <= 40 and error.isascii() and error.replace("_", "").isalpha()
    return f": it says {error}" if is_code else ""
