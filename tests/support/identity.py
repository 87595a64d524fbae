"""A scripted identity provider over TLS on loopback, and its ID tokens."""

import hmac
import json
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwk, jws

from tests.support.certificates import certificate_for
from tests.support.receiver import Answer, Receiver, answering, receiver

HOST = "login.example.org"
CLIENT_ID, CLIENT_SECRET = "custody", "client secret: 5+5&%"


@cache
def signing_key(kid: str = "1") -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(2048, {"kid": kid})


def published(*keys: jwk.Key) -> dict[str, Any]:
    return {"keys": [key.as_dict(private=False) for key in keys]}


def sign(claims: Any, key: jwk.Key, **header: Any) -> str:
    """Signs with any header, which a careful library would refuse."""
    header = {"alg": "RS256", "kid": key.kid, **header}
    header = {name: value for name, value in header.items() if value is not None}
    registry = jws.JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
    return jws.serialize_compact(header, json.dumps(claims), key, registry=registry)


def by_hand(claims: Any, alg: str, secret: bytes = b"") -> str:
    """Without a signature, or with an HMAC under a public key, which the library refuses to make."""

    def written(part: bytes) -> str:
        return urlsafe_b64encode(part).rstrip(b"=").decode()

    said = ".".join(written(json.dumps(part).encode()) for part in ({"alg": alg, "kid": "1"}, claims))
    return f"{said}.{written(hmac.digest(secret, said.encode(), 'sha256')) if secret else ''}"


def answer_of(document: Any, status: int = 200) -> Answer:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n"
    return answering(head.encode() + body)


@dataclass
class Scripted:
    """``subject``: who signs in. ``token``: makes the answer to a code from the right claims.
    ``answers``: replacements by path. ``discovery``: further fields of the discovery document.
    """

    receiver: Receiver
    clock: Any
    subject: str = "ada"
    claims: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=lambda: published(signing_key()))
    token: Any = field(default=lambda claims: sign(claims, signing_key()))
    answers: dict[str, Answer] = field(default_factory=dict)
    discovery: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return self.receiver.url("", HOST)

    @property
    def asked(self) -> list[str]:
        """The paths of the requests."""
        return [request.line.split(" ")[1] for request in self.receiver.arrived]

    def answer(self, line: ssl.SSLSocket, own: Receiver) -> None:
        request = own.arrived[-1]
        path = request.line.split(" ")[1]
        usual = {
            "/.well-known/openid-configuration": lambda: answer_of(self._discovery()),
            "/keys": lambda: answer_of(self.keys),
            "/token": lambda: self._redeem(request.body.decode()),
        }
        (self.answers.get(path) or usual[path]())(line, own)

    def authorise(self, url: str) -> dict[str, str]:
        """The parameters with which a person returns from the provider's form."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = f"code {len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def good(self, nonce: str) -> dict[str, Any]:
        now = int(self.clock().timestamp())
        return {
            "iss": self.issuer, "aud": CLIENT_ID, "sub": self.subject, "nonce": nonce,
            "iat": now, "exp": now + 300,
        }  # fmt: skip

    def _discovery(self) -> dict[str, Any]:
        usual = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/form",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": True,
        }
        return usual | self.discovery

    def _redeem(self, body: str) -> Answer:
        """A code is valid once, and for its redirect URI."""
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self.codes.pop(sent["code"], None)
        if asked is None or asked["redirect_uri"] != sent["redirect_uri"]:
            return answer_of({"error": "invalid_grant"}, 400)
        good = self.good(asked["nonce"])
        if "max_age" in asked:
            good["auth_time"] = good["iat"]
        return answer_of({"id_token": self.token({**good, **self.claims})})


@contextmanager
def scripted(folder: Path, clock: Any = lambda: datetime.now(UTC)) -> Iterator[tuple[Scripted, Path]]:
    """The provider, and the file of the authority to trust."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, context = certificate_for(folder, HOST)
    with receiver(context) as own:
        made = Scripted(own, clock)
        own.answer = made.answer
        yield made, ca
