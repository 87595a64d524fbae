"""Signing keys and the signing profile."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Few
from custody.schemas.keys import (
    Key,
    KeyChallenge,
    KeyChallengeRequest,
    RegisterKeyRequest,
    RevokeKeyRequest,
    SigningProfileAddress,
)

_KEYS = TypeAdapter(Few[Key])


class KeyCalls:
    @method
    @staticmethod
    def key_challenge(core: Core, body: KeyChallengeRequest) -> Plan[KeyChallenge]:
        """``POST /api/v1/key-challenge``. Repeatable: a challenge that is not used just expires."""
        return read(
            (yield from call(core, core.build("POST", "/api/v1/key-challenge", body), repeatable=True)),
            KeyChallenge,
        )

    @method
    @staticmethod
    def register_key(
        core: Core, body: RegisterKeyRequest, *, idempotency_key: str | None = None
    ) -> Plan[Key]:
        """``POST /api/v1/register-key``."""
        request = core.build("POST", "/api/v1/register-key", body, headers=idempotency(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), Key)

    @method
    @staticmethod
    def keys(core: Core) -> Plan[list[Key]]:
        """``GET /api/v1/keys``: the caller's own, revoked ones too."""
        return read((yield from call(core, core.build("GET", "/api/v1/keys"), repeatable=True)), _KEYS)

    @method
    @staticmethod
    def revoke_key(core: Core, body: RevokeKeyRequest) -> Plan[Key]:
        """``POST /api/v1/revoke-key``. Repeatable: what is revoked so already stays as it is."""
        request = core.build("POST", "/api/v1/revoke-key", body)
        return read((yield from call(core, request, repeatable=True)), Key)

    @method
    @staticmethod
    def signing_profile_address(
        core: Core, network: str, *, key_id: str | None = None
    ) -> Plan[SigningProfileAddress]:
        """``GET /api/v1/signing-profile-address``: of the active key, or of another one of the caller's own."""
        query = {"network": network, "key_id": key_id}
        request = core.build("GET", "/api/v1/signing-profile-address", query=query)
        return read((yield from call(core, request, repeatable=True)), SigningProfileAddress)
