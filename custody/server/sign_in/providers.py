"""Identity providers over HTTP: their metadata and keys, cached for a while, and the exchange of a code for
an ID token (`sign_in.id_tokens` reads it). An issuer is an untrusted URL: requests are sent as those of
webhooks are (P51), to public addresses only.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from custody.common.bounded_cache import BoundedCache
from custody.server.errors import IdentityRefused, ProviderUnavailable
from custody.server.requests.rates import UnderWay
from custody.server.rules.ports import Clock
from custody.server.rules.webhooks import MAX_URL, BadUrl, WebhookUrl, read_url
from custody.server.store.models import IdentityProviderRow
from custody.server.webhooks.sending import DeliveryTrouble, ReceiverAnswer, Sender, Undelivered

if TYPE_CHECKING:
    from custody.server.sign_in.id_tokens import Keys

# A large provider's keys with their certificates are some 30 kB.
MAX_ANSWER: Final = 131_072
KEPT_FOR: Final = timedelta(hours=1)
# A token with an unknown key makes us fetch the keys again, at most this often.
KEYS_AGAIN_AFTER: Final = timedelta(minutes=1)
MAX_KEPT: Final = 200
# After a failed request the provider is not asked again for this long.
FAILED_FOR: Final = timedelta(minutes=1)
# Each exchange occupies a thread for up to ten seconds, so an organisation with a slow provider gets few.
# Fetching metadata may not take all threads, so that users who come back with a code are served.
AT_ONCE: Final = 2
AT_ONCE_PUBLISHED: Final = 12
AT_ONCE_IN_ALL: Final = 16
RETRY_SECONDS: Final = 10

_Url = Annotated[str, StringConstraints(max_length=MAX_URL)]
_WORDS: Final[Mapping[DeliveryTrouble, str]] = {
    DeliveryTrouble.NAME_NOT_FOUND: "its name has no address",
    DeliveryTrouble.ADDRESS_NOT_PUBLIC: "its address is not a public one, and the operator does not allow it",
    DeliveryTrouble.TLS_FAILED: "its certificate is not accepted",
    DeliveryTrouble.TIMED_OUT: "it does not answer in time",
    DeliveryTrouble.UNREACHABLE: "it cannot be reached",
    DeliveryTrouble.REDIRECTED: "it leads elsewhere",
}


class ProviderMetadata(BaseModel):
    """OpenID Connect Discovery, section 3."""

    issuer: _Url
    authorization_endpoint: _Url
    token_endpoint: _Url
    jwks_uri: _Url
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]
    names_issuer: bool = Field(default=False, alias="authorization_response_iss_parameter_supported")


@dataclass(frozen=True)
class _Kept:
    published: ProviderMetadata
    keys: "Keys"
    at: datetime
    keys_at: datetime


class Providers:
    """Requests are counted for the provider's organisation."""

    def __init__(self, clock: Clock, sender: Sender, allowed: frozenset[str]) -> None:
        self._clock = clock
        self._sender = sender
        self._allowed = allowed
        self._kept: BoundedCache[str, _Kept] = BoundedCache(MAX_KEPT)
        self._failed: BoundedCache[str, tuple[datetime, str]] = BoundedCache(MAX_KEPT)
        # By organisation; under None all of them.
        self._busy = UnderWay()

    def published(self, provider: IdentityProviderRow) -> ProviderMetadata:
        """Raises ProviderUnavailable."""
        return self._of(provider).published

    def redeem(
        self, provider: IdentityProviderRow, secret: str, redirect_uri: str, code: str, verifier: str
    ) -> str:
        """The ID token for a code (RFC 6749, section 4.1.3, and RFC 7636). Raises IdentityRefused,
        ProviderUnavailable.
        """
        published = self.published(provider)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if "client_secret_basic" in published.token_endpoint_auth_methods_supported:
            pair = f"{quote(provider.client_id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": provider.client_id, "client_secret": secret}
        body = urlencode(form).encode()
        answer = self._ask(provider, "POST", published.token_endpoint, body, headers, AT_ONCE_IN_ALL)
        if answer.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED}:
            raise IdentityRefused("The identity provider refused its own code, or the organisation's secret.")
        token = self._read(provider.issuer, answer).get("id_token")
        if not isinstance(token, str):
            raise ProviderUnavailable(f"{provider.issuer} does not say who you are.")
        return token

    def subject(
        self, provider: IdentityProviderRow, token: str, nonce: str, since: datetime | None = None
    ) -> str:
        """The ``sub`` of a valid token. For an unknown key the keys are fetched again, at most once a minute.
        ``since``: the person must have signed in at the provider since then.

        Raises IdentityRefused, ProviderUnavailable.
        """
        from custody.server.sign_in.id_tokens import NotFresh, TokenNotGenuine, UnknownKey, subject_of

        kept = self._of(provider)

        def judged(keys: "Keys") -> str:
            return subject_of(provider, token, nonce, self._clock(), since, keys)

        try:
            try:
                return judged(kept.keys)
            except UnknownKey:
                if self._clock() - kept.keys_at < KEYS_AGAIN_AFTER:
                    raise
                return judged(self._renewed(provider, kept).keys)
        except NotFresh:
            raise IdentityRefused(
                "The identity provider does not say that you signed in there just now. Sign out there, and "
                "link again. Where that does not help, its administrator has it send auth_time."
            ) from None
        except TokenNotGenuine:
            raise IdentityRefused(
                "What the identity provider says about you is not genuine, or is old."
            ) from None

    def _of(self, provider: IdentityProviderRow) -> _Kept:
        issuer, now = provider.issuer, self._clock()
        kept, failed = self._kept.get(issuer), self._failed.get(issuer)
        if kept is not None and now - kept.at < KEPT_FOR:
            return kept
        if failed is not None and now - failed[0] < FAILED_FOR:
            raise ProviderUnavailable(failed[1], retry_after=int(FAILED_FOR.total_seconds()))
        try:
            return self._discovered(provider, now)
        except ProviderUnavailable as error:
            # With a time to retry after, it was not asked at all.
            if error.retry_after is None:
                self._failed.keep(issuer, (self._clock(), error.detail))
            raise

    def _discovered(self, provider: IdentityProviderRow, now: datetime) -> _Kept:
        issuer = provider.issuer
        document = self._get(provider, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            published = ProviderMetadata.model_validate(document)
        except ValidationError:
            raise ProviderUnavailable(f"{issuer} publishes nothing that an identity provider does.") from None
        if published.issuer != issuer:
            raise ProviderUnavailable(f"{issuer} says that it is another issuer.")
        self._checked(issuer, published.authorization_endpoint)
        return self._kept.keep(issuer, _Kept(published, self._keys(provider, published), now, now))

    def _renewed(self, provider: IdentityProviderRow, kept: _Kept) -> _Kept:
        # Stored first: if the request fails, the next one waits as well.
        kept = self._kept.keep(provider.issuer, replace(kept, keys_at=self._clock()))
        kept = replace(kept, keys=self._keys(provider, kept.published), keys_at=self._clock())
        return self._kept.keep(provider.issuer, kept)

    def _keys(self, provider: IdentityProviderRow, published: ProviderMetadata) -> "Keys":
        from custody.server.sign_in.id_tokens import TokenNotGenuine, read_keys

        try:
            return read_keys(self._get(provider, published.jwks_uri))
        except TokenNotGenuine:
            raise ProviderUnavailable(f"{provider.issuer} publishes no keys.") from None

    def _get(self, provider: IdentityProviderRow, url: str) -> dict[str, Any]:
        return self._read(provider.issuer, self._ask(provider, "GET", url, b"", {}, AT_ONCE_PUBLISHED))

    def _ask(
        self,
        provider: IdentityProviderRow,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        lines: int,
    ) -> ReceiverAnswer:
        """``lines``: the most exchanges at once, of all organisations together."""
        headers = {"Accept": "application/json", "Connection": "close", **headers}
        refusal = ProviderUnavailable(
            f"{provider.issuer} is being asked too often.", retry_after=RETRY_SECONDS
        )
        try:
            with (
                self._busy.one(provider.organisation_id, AT_ONCE, refusal),
                self._busy.one(None, lines, refusal),
            ):
                return self._sender.ask(
                    method, self._checked(provider.issuer, url), body, headers, MAX_ANSWER
                )
        except Undelivered as error:
            words = _WORDS.get(error.trouble, "it does not answer as it should")
            raise ProviderUnavailable(f"{provider.issuer} is not used: {words}.") from None

    def _checked(self, issuer: str, url: str) -> WebhookUrl:
        """A host that the operator allows is called only for an issuer at that host: no other provider can
        send us there.
        """
        try:
            own, checked = read_url(issuer, self._allowed), read_url(url, self._allowed)
            return checked if checked.authority == own.authority else read_url(url)
        except BadUrl:
            raise ProviderUnavailable(f"{issuer} names an address that is not called.") from None

    @staticmethod
    def _read(issuer: str, answer: ReceiverAnswer) -> dict[str, Any]:
        try:
            value = json.loads(answer.body) if answer.status == HTTPStatus.OK else None
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ProviderUnavailable(f"{issuer} does not answer as an identity provider does.")
        return value


def base64url(data: bytes) -> str:
    """Without padding (RFC 7515, section 2)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()
