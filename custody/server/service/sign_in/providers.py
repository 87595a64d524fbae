"""Identity providers over HTTP: what they publish, kept for a while, and the code that becomes an ID token.

An issuer is a stranger's address: every exchange goes the way of the webhooks' (P51), to public addresses
alone.
"""

import json
import threading
from base64 import b64encode
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from custody.server.domain.errors import IdentityRefused, ProviderUnavailable
from custody.server.domain.ports import Clock
from custody.server.domain.webhooks import MAX_URL, BadUrl, read_url
from custody.server.service.sign_in.id_tokens import (
    Expected,
    Keys,
    NotGenuine,
    UnknownKey,
    read_keys,
    subject_of,
)
from custody.server.service.webhooks.sending import Answer, Sender, Trouble, Undelivered

# A large provider's keys with their certificates are some 30 kB.
MAX_ANSWER: Final = 131_072
KEPT_FOR: Final = timedelta(hours=1)
# Tokens with an unknown key make us ask again: so often and no more.
KEYS_AGAIN_AFTER: Final = timedelta(minutes=1)
MAX_KEPT: Final = 200
# Each exchange holds a thread for ten seconds at most: a provider that is slow has few of them, all together
# not all.
AT_ONCE: Final = 4
AT_ONCE_IN_ALL: Final = 16
RETRY_SECONDS: Final = 10

_Url = Annotated[str, StringConstraints(max_length=MAX_URL)]
_WORDS: Final[Mapping[Trouble, str]] = {
    Trouble.NAME_NOT_FOUND: "its name has no address",
    Trouble.ADDRESS_NOT_PUBLIC: "its address is not a public one, and the operator does not allow it",
    Trouble.TLS_FAILED: "its certificate is not accepted",
    Trouble.TIMED_OUT: "it does not answer in time",
    Trouble.UNREACHABLE: "it cannot be reached",
    Trouble.REDIRECTED: "it leads elsewhere",
}


class Published(BaseModel):
    """OpenID Connect Discovery, section 3."""

    issuer: _Url
    authorization_endpoint: _Url
    token_endpoint: _Url
    jwks_uri: _Url
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]
    names_issuer: bool = Field(default=False, alias="authorization_response_iss_parameter_supported")


@dataclass(frozen=True)
class Client:
    """What the platform is at a provider."""

    client_id: str
    secret: str = field(repr=False)
    redirect_uri: str


@dataclass(frozen=True)
class _Kept:
    published: Published
    keys: Keys
    at: datetime
    keys_at: datetime


class Providers:
    def __init__(self, clock: Clock, sender: Sender, allowed: frozenset[str]) -> None:
        self._clock = clock
        self._sender = sender
        self._allowed = allowed
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()

    def published(self, issuer: str) -> Published:
        """Raises ProviderUnavailable."""
        return self._of(issuer).published

    def redeem(self, issuer: str, client: Client, code: str, verifier: str) -> str:
        """The ID token for a code (RFC 6749, section 4.1.3, and RFC 7636). Raises IdentityRefused,
        ProviderUnavailable.
        """
        published = self.published(issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if "client_secret_basic" in published.token_endpoint_auth_methods_supported:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client.client_id, "client_secret": client.secret}
        answer = self._ask(issuer, "POST", published.token_endpoint, urlencode(form).encode(), headers)
        if answer.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED}:
            raise IdentityRefused(
                "The identity provider did not take what it sent you with, or not the organisation's secret."
            )
        token = self._read(issuer, answer).get("id_token")
        if not isinstance(token, str):
            raise ProviderUnavailable(f"{issuer} does not say who you are.")
        return token

    def subject(self, issuer: str, token: str, expected: Expected) -> str:
        """Whom a genuine token names. For an unknown key the keys are asked for again, once in a while.

        Raises IdentityRefused, ProviderUnavailable.
        """
        kept = self._of(issuer)
        try:
            try:
                return subject_of(token, kept.keys, expected, self._clock())
            except UnknownKey:
                if self._clock() - kept.keys_at < KEYS_AGAIN_AFTER:
                    raise
                return subject_of(token, self._renewed(issuer, kept).keys, expected, self._clock())
        except NotGenuine:
            raise IdentityRefused(
                "What the identity provider says about you is not genuine, or is old."
            ) from None

    def _of(self, issuer: str) -> _Kept:
        now = self._clock()
        with self._lock:
            kept = self._kept.get(issuer)
        if kept is not None and now - kept.at < KEPT_FOR:
            return kept
        found = self._get(issuer, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            published = Published.model_validate(found)
        except ValidationError:
            raise ProviderUnavailable(f"{issuer} publishes nothing that an identity provider does.") from None
        if published.issuer != issuer:
            raise ProviderUnavailable(f"{issuer} says that it is another issuer.")
        self._checked(issuer, published.authorization_endpoint)
        return self._keep(issuer, _Kept(published, self._keys(issuer, published), now, now))

    def _renewed(self, issuer: str, kept: _Kept) -> _Kept:
        # Noted first: where asking fails, the next one waits as well.
        self._keep(issuer, replace(kept, keys_at=self._clock()))
        return self._keep(
            issuer, replace(kept, keys=self._keys(issuer, kept.published), keys_at=self._clock())
        )

    def _keep(self, issuer: str, kept: _Kept) -> _Kept:
        with self._lock:
            self._kept[issuer] = kept
            self._kept.move_to_end(issuer)
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return kept

    def _keys(self, issuer: str, published: Published) -> Keys:
        try:
            return read_keys(self._get(issuer, published.jwks_uri))
        except NotGenuine:
            raise ProviderUnavailable(f"{issuer} publishes no keys.") from None

    def _get(self, issuer: str, url: str) -> dict[str, Any]:
        return self._read(issuer, self._ask(issuer, "GET", url, b"", {}))

    def _ask(self, issuer: str, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        headers = {"Accept": "application/json", "Connection": "close", **headers}
        try:
            with self._line(issuer):
                return self._sender.ask(method, self._checked(issuer, url), body, headers, MAX_ANSWER)
        except Undelivered as error:
            words = _WORDS.get(error.trouble, "it does not answer as it should")
            raise ProviderUnavailable(f"{issuer} is not used: {words}.") from None

    def _checked(self, issuer: str, url: str) -> Any:
        try:
            return read_url(url, self._allowed)
        except BadUrl:
            raise ProviderUnavailable(f"{issuer} names an address that is not called.") from None

    @staticmethod
    def _read(issuer: str, answer: Answer) -> dict[str, Any]:
        try:
            found = json.loads(answer.body) if answer.status == HTTPStatus.OK else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ProviderUnavailable(f"{issuer} does not answer as an identity provider does.")
        return found

    @contextmanager
    def _line(self, issuer: str) -> Iterator[None]:
        with self._lock:
            if self._busy[issuer] >= AT_ONCE or self._busy.total() >= AT_ONCE_IN_ALL:
                raise ProviderUnavailable(f"{issuer} is being asked too often.", retry_after=RETRY_SECONDS)
            self._busy[issuer] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[issuer] -= 1
                if not self._busy[issuer]:
                    del self._busy[issuer]
