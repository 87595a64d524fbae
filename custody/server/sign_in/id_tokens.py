"""The keys that an identity provider publishes, and whom an ID token names (OpenID Connect Core, sections
2 and 3.1.3.7).
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from joserfc import jwk, jws, jwt
from joserfc.errors import JoseError

from custody.server.rules.credentials import MALFORMED
from custody.server.store.models import IdentityProviderRow

# Asymmetric ones only: a forger can make an HS256 token with the provider's public key as the secret, and one
# with `none` without any key (RFC 8725, sections 2.1 and 3.1).
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
MAX_TOKEN: Final = 16_384
MAX_KEYS: Final = 50
# Bytes of a number in a key: verifying with longer ones, which nobody uses, would take long.
_BYTES: Final = {"n": (2_048 // 8, 8_192 // 8), "e": (1, 8), "x": (1, 66), "y": (1, 66)}
# Public members only: from private ones the library would search for the primes, however long that takes.
_PUBLIC: Final = ("kty", *_BYTES, "crv", "kid", "use", "alg", "key_ops")
_KINDS: Final[Mapping[str, type[jwk.RSAKey | jwk.ECKey]]] = {"RSA": jwk.RSAKey, "EC": jwk.ECKey}
# Between the clocks of two machines.
SKEW_SECONDS: Final = 60
# OpenID Connect Core, section 2.
MAX_SUBJECT: Final = 255
_MALFORMED: Final = (JoseError, *MALFORMED)
Keys = Mapping[str | None, jwk.Key]


class TokenNotGenuine(Exception):
    """The token proves nothing. The message contains none of its text."""


class NotFresh(TokenNotGenuine):
    """It does not say that the person has signed in since."""


class UnknownKey(TokenNotGenuine):
    """Signed with a key that is not among those fetched."""


def read_keys(document: object) -> Keys:
    """The signing keys of a JWK set, by their ids; other keys are skipped. Raises TokenNotGenuine."""
    match document:
        case {"keys": list(listed)}:
            pass
        case _:
            raise TokenNotGenuine("no list of keys")
    keys: dict[str | None, jwk.Key] = {}
    for each in listed[:MAX_KEYS]:
        with suppress(*_MALFORMED):
            public = {name: each[name] for name in _PUBLIC if name in each}
            kind = _KINDS[public["kty"]]
            is_bounded = all(_fits(public[name], *_BYTES[name]) for name in _BYTES if name in public)
            if is_bounded and public.get("use", "sig") == "sig":
                keys[public.get("kid")] = kind.import_key(public)
    return keys


def _fits(text: str, least: int, most: int) -> bool:
    """Whether a number in base64url has so many bytes. Its text is bounded before it is decoded."""
    is_short = len(text) <= -(-most // 3) * 4
    return is_short and least <= len(urlsafe_b64decode(text + "==").lstrip(b"\0")) <= most


def subject_of(
    provider: IdentityProviderRow, token: str, nonce: str, now: datetime, since: datetime | None, keys: Keys
) -> str:
    """The ``sub`` of a valid token. Raises TokenNotGenuine, NotFresh, UnknownKey."""
    if len(token) > MAX_TOKEN:
        raise TokenNotGenuine("it is too long")

    def find(made: Any) -> jwk.Key:
        kid = made.headers().get("kid")
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        if kid not in keys:
            raise UnknownKey("its key is not published")
        return keys[kid]

    registry = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    try:
        claims = jwt.decode(token, find, ALGORITHMS, registry).claims
        jwt.JWTClaimsRegistry(
            now=int(now.timestamp()),
            leeway=SKEW_SECONDS,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(claims)
        return _subject(claims, provider.client_id, nonce, since)
    except _MALFORMED as error:
        raise TokenNotGenuine(type(error).__name__) from None


def _subject(claims: Mapping[str, Any], client_id: str, nonce: str, since: datetime | None) -> str:
    audience, party, subject = claims["aud"], claims.get("azp"), claims["sub"]
    if claims.get("nonce") != nonce:
        raise TokenNotGenuine("it answers another request")
    # A token for several clients names the one that asked for it.
    needs_party = isinstance(audience, list) and len(audience) > 1
    if party != client_id and (party is not None or needs_party):
        raise TokenNotGenuine("it was made for another client")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
        raise TokenNotGenuine("it names no person")
    if since is not None:
        at = claims.get("auth_time")
        # In Python a bool is an int.
        if not isinstance(at, int) or isinstance(at, bool) or at < int(since.timestamp()) - SKEW_SECONDS:
            raise NotFresh("of an earlier sign-in")
    return subject
