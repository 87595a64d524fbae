"""Passkeys (WebAuthn Level 3): a browser signs a challenge in place of a code, for this platform's origin
only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.rules.ports import Clock
from custody.server.store.models import PasskeyRow, UserRow

MAX_PASSKEYS: Final = 10
# Bytes of a browser's answer: a key, a signature, some hundred bytes of client data.
MAX_ANSWER: Final = 16_384
# The device asks for its PIN or a fingerprint, so that a passkey alone is a second factor.
_VERIFIED: Final = UserVerificationRequirement.REQUIRED
_NAME: Final = "Custody platform"
# What the library raises for malformed answers, each of which counts as a failed try.
_NO_ANSWER: Final = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError,
    NotImplementedError,
)  # fmt: skip


@dataclass(frozen=True)
class Assertion:
    """A browser's answer to a request, as JSON (WebAuthn Level 3, section 5.1)."""

    text: str = field(repr=False)


class Passkeys:
    """``public_url``: the platform's address in browsers. Without a host name in it there are no passkeys."""

    def __init__(self, clock: Clock, public_url: str | None) -> None:
        self._clock = clock
        self._server = _server(public_url)

    @property
    def are_offered(self) -> bool:
        return self._server is not None

    def of(self, db: Session, user_id: int) -> list[PasskeyRow]:
        """The newest last."""
        return list(
            db.scalars(select(PasskeyRow).where(PasskeyRow.user_id == user_id).order_by(PasskeyRow.id))
        )

    def request(self, db: Session, user_id: int, challenge: bytes) -> str:
        """The request options for a browser, as JSON. Empty where the account has no passkey."""
        known = self.of(db, user_id)
        if self._server is None or not known:
            return ""
        options, _ = self._server.authenticate_begin(
            [_data(each) for each in known], _VERIFIED, challenge=challenge
        )
        return _json(options)

    def accepts(self, db: Session, user_id: int, challenge: bytes, given: Assertion) -> str | None:
        """What a valid answer proves, in words, or None. A signature counter that does not rise means that
        the passkey may have been copied (section 6.1.1).
        """
        known = {each.credential_id: each for each in self.of(db, user_id)}
        if self._server is None:
            return None
        try:
            answer = AuthenticationResponse.from_dict(_read(given.text))
            self._server.authenticate_complete(
                _state(challenge), [_data(each) for each in known.values()], answer
            )
        except _NO_ANSWER:
            return None
        passkey, counter = known[answer.raw_id], answer.response.authenticator_data.counter
        if (counter or passkey.sign_count) and counter <= passkey.sign_count:
            return None
        passkey.sign_count, passkey.last_used_at = counter, self._clock()
        return f"with the passkey {passkey.name}"

    def creation(self, db: Session, user: UserRow, challenge: bytes) -> str:
        """The creation options for a browser, as JSON. Raises StateConflict."""
        known = self.of(db, user.id)
        server = self._require(len(known))
        entity = PublicKeyCredentialUserEntity(
            name=user.email, id=user.id.to_bytes(8, "big"), display_name=user.email
        )
        options, _ = server.register_begin(
            entity,
            [_data(each) for each in known],
            resident_key_requirement=ResidentKeyRequirement.DISCOURAGED,
            user_verification=_VERIFIED,
            challenge=challenge,
        )
        return _json(options)

    def add(self, db: Session, user: UserRow, name: str, challenge: bytes, given: Assertion) -> None:
        """Raises Invalid for an answer that is not to this challenge, and StateConflict."""
        count = (
            db.scalar(select(func.count()).select_from(PasskeyRow).where(PasskeyRow.user_id == user.id)) or 0
        )
        server = self._require(count)
        try:
            made = server.register_complete(_state(challenge), _read(given.text)).credential_data
        except _NO_ANSWER:
            raise Invalid("The browser's answer is not to this request: try it again.") from None
        assert made is not None, "register_complete checks that it is there"
        taken = db.scalar(select(PasskeyRow.id).where(PasskeyRow.credential_id == made.credential_id))
        if taken is not None:
            raise Invalid("This passkey is known already.")
        now: datetime = self._clock()
        db.add(
            PasskeyRow(
                user_id=user.id,
                credential_id=made.credential_id,
                credential=bytes(made),
                sign_count=0,
                name=name,
                created_at=now,
            )
        )

    def remove(self, db: Session, user_id: int, passkey_id: int) -> str:
        """Its name. Raises NotFound."""
        found = db.scalar(
            select(PasskeyRow).where(PasskeyRow.id == passkey_id, PasskeyRow.user_id == user_id)
        )
        if found is None:
            raise NotFound("You have no such passkey.")
        db.delete(found)
        return found.name

    def _require(self, count: int) -> Fido2Server:
        if self._server is None:
            raise StateConflict("This platform has no address that passkeys could be bound to.")
        if count >= MAX_PASSKEYS:
            raise StateConflict(f"{MAX_PASSKEYS} passkeys are enough: remove one first.")
        return self._server


def _server(public_url: str | None) -> Fido2Server | None:
    """None for an IP address: passkeys are bound to a host name (section 5.1.3)."""
    parts = urlsplit(public_url or "")
    host = parts.hostname
    if host is None or _is_ip(host):
        return None
    origin = f"{parts.scheme}://{parts.netloc}"
    return Fido2Server(
        PublicKeyCredentialRpEntity(name=_NAME, id=host), verify_origin=lambda given: given == origin
    )


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _state(challenge: bytes) -> Mapping[str, Any]:
    """The library's state between a request and its answer, made from our stored challenge."""
    return {"challenge": websafe_encode(challenge), "user_verification": _VERIFIED}


def _data(passkey: PasskeyRow) -> AttestedCredentialData:
    return AttestedCredentialData(passkey.credential)


def _json(options: Mapping[str, Any]) -> str:
    return json.dumps(dict(options)["publicKey"])


def _read(text: str) -> Mapping[str, Any]:
    """Raises ValueError."""
    if len(text) > MAX_ANSWER:
        raise ValueError("too long")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004 - one error for all that is no answer
    return found
