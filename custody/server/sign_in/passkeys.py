"""Passkeys (WebAuthn Level 3): a browser signs a challenge in place of a code, for this platform's origin
only.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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
from sqlalchemy import select

from custody.server.calls import Ctx
from custody.server.errors import Invalid, StateConflict
from custody.server.rules.credentials import MALFORMED
from custody.server.store.models import PasskeyRow, UserRow

MAX_PASSKEYS: Final = 10
# Bytes of a browser's answer: a key, a signature, some hundred bytes of client data.
MAX_ANSWER: Final = 16_384
# The device asks for its PIN or a fingerprint, so that a passkey alone is a second factor.
_VERIFIED: Final = UserVerificationRequirement.REQUIRED
_NAME: Final = "Custody platform"


@dataclass(frozen=True)
class Assertion:
    """A browser's answer to a request, as JSON (WebAuthn Level 3, section 5.1)."""

    text: str = field(repr=False)


def are_offered(ctx: Ctx) -> bool:
    """Not without a host name in the platform's public address."""
    return _server(ctx) is not None


def passkeys_of(ctx: Ctx, user_id: int) -> list[PasskeyRow]:
    """The newest last."""
    query = select(PasskeyRow).where(PasskeyRow.user_id == user_id).order_by(PasskeyRow.id)
    return list(ctx.db.scalars(query))


def request(ctx: Ctx, user_id: int, challenge: bytes) -> str:
    """The request options for a browser, as JSON. Empty where the account has no passkey."""
    server, known = _server(ctx), passkeys_of(ctx, user_id)
    if server is None or not known:
        return ""
    options, _ = server.authenticate_begin(_data(known), _VERIFIED, challenge=challenge)
    return _json(options)


def accepts(ctx: Ctx, user_id: int, challenge: bytes, given: Assertion) -> str | None:
    """What a valid answer proves, in words, or None. A signature counter that does not rise means that the
    passkey may have been copied (section 6.1.1).
    """
    server, known = _server(ctx), passkeys_of(ctx, user_id)
    if server is None:
        return None
    try:
        answer = AuthenticationResponse.from_dict(_read(given.text))
        server.authenticate_complete(_state(challenge), _data(known), answer)
    except MALFORMED:
        return None
    passkey = next(each for each in known if each.credential_id == answer.raw_id)
    counter = answer.response.authenticator_data.counter
    if (counter or passkey.sign_count) and counter <= passkey.sign_count:
        return None
    passkey.sign_count, passkey.last_used_at = counter, ctx.now
    return f"with the passkey {passkey.name}"


def creation(ctx: Ctx, challenge: bytes) -> str:
    """The creation options for the caller's browser, as JSON. Raises StateConflict."""
    user, known = ctx.db.get_one(UserRow, ctx.caller.user_id), passkeys_of(ctx, ctx.caller.user_id)
    entity = PublicKeyCredentialUserEntity(
        name=user.email, id=user.id.to_bytes(8, "big"), display_name=user.email
    )
    options, _ = _with_room(ctx, known).register_begin(
        entity,
        _data(known),
        resident_key_requirement=ResidentKeyRequirement.DISCOURAGED,
        user_verification=_VERIFIED,
        challenge=challenge,
    )
    return _json(options)


def add(ctx: Ctx, name: str, challenge: bytes, given: Assertion) -> None:
    """Raises Invalid for an answer that is not to this challenge, and StateConflict."""
    server = _with_room(ctx, passkeys_of(ctx, ctx.caller.user_id))
    try:
        made = server.register_complete(_state(challenge), _read(given.text)).credential_data
    except MALFORMED:
        raise Invalid("The browser's answer is not to this request: try it again.") from None
    assert made is not None, "register_complete checks that it is there"
    taken = ctx.db.scalar(select(PasskeyRow.id).where(PasskeyRow.credential_id == made.credential_id))
    if taken is not None:
        raise Invalid("This passkey is known already.")
    ctx.db.add(
        PasskeyRow(
            user_id=ctx.caller.user_id,
            credential_id=made.credential_id,
            credential=bytes(made),
            sign_count=0,
            name=name,
            created_at=ctx.now,
        )
    )


def _with_room(ctx: Ctx, known: list[PasskeyRow]) -> Fido2Server:
    """For one passkey more."""
    server = _server(ctx)
    if server is None:
        raise StateConflict("This platform has no address that passkeys could be bound to.")
    if len(known) >= MAX_PASSKEYS:
        raise StateConflict(f"{MAX_PASSKEYS} passkeys are enough: remove one first.")
    return server


def _server(ctx: Ctx) -> Fido2Server | None:
    """None for an IP address: passkeys are bound to a host name (section 5.1.3)."""
    parts = urlsplit(ctx.tools.public_url or "")
    with suppress(ValueError):
        ip_address(parts.hostname or "")
        return None
    if parts.hostname is None:
        return None
    origin = f"{parts.scheme}://{parts.netloc}"
    return Fido2Server(
        PublicKeyCredentialRpEntity(name=_NAME, id=parts.hostname),
        verify_origin=lambda given: given == origin,
    )


def _state(challenge: bytes) -> Mapping[str, Any]:
    """The library's state between a request and its answer, made from our stored challenge."""
    return {"challenge": websafe_encode(challenge), "user_verification": _VERIFIED}


def _data(known: list[PasskeyRow]) -> list[AttestedCredentialData]:
    return [AttestedCredentialData(each.credential) for each in known]


def _json(options: Mapping[str, Any]) -> str:
    return json.dumps(dict(options)["publicKey"])


def _read(text: str) -> Mapping[str, Any]:
    """Raises ValueError."""
    if len(text) > MAX_ANSWER:
        raise ValueError("too long")
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004 - one error for all that is no answer
    return value
