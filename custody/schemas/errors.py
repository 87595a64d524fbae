"""Problem details (RFC 9457) and the platform's stable error codes."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from custody.schemas.common import (
    Count,
    Int64,
    Label,
    Many,
    Shape,
)

PROBLEM_CONTENT_TYPE = "application/problem+json"


class ErrorCode(StrEnum):
    """What a program may branch on. Codes are never renamed; the sentence beside them may be."""

    MALFORMED_JSON = "MALFORMED_JSON"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    TOKEN_EXPIRED = "TOKEN_EXPIRED"  # noqa: S105 - a code, not a secret
    OTP_INVALID = "OTP_INVALID"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_ORG_MEMBER = "NOT_ORG_MEMBER"
    NOT_A_SIGNER = "NOT_A_SIGNER"
    KEY_REVOKED = "KEY_REVOKED"
    ROLE_LIMIT_EXCEEDED = "ROLE_LIMIT_EXCEEDED"
    VAULT_LIMIT_EXCEEDED = "VAULT_LIMIT_EXCEEDED"
    NOT_IN_ADDRESS_BOOK = "NOT_IN_ADDRESS_BOOK"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    STATE_CONFLICT = "STATE_CONFLICT"
    VAULT_FROZEN = "VAULT_FROZEN"
    SECOND_PERSON_NEEDED = "SECOND_PERSON_NEEDED"
    LOCKED_FUNDS = "LOCKED_FUNDS"
    KEY_ALREADY_ACTIVE = "KEY_ALREADY_ACTIVE"
    KEY_ACCOUNTS_EXHAUSTED = "KEY_ACCOUNTS_EXHAUSTED"
    DEPLOYMENT_NOT_CONFIRMED = "DEPLOYMENT_NOT_CONFIRMED"
    CALL_NOT_STALLED = "CALL_NOT_STALLED"
    ALREADY_PAUSED = "ALREADY_PAUSED"
    NOT_PAUSED = "NOT_PAUSED"
    LAST_ADMIN = "LAST_ADMIN"
    IDEMPOTENCY_IN_PROGRESS = "IDEMPOTENCY_IN_PROGRESS"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    VALIDATION = "VALIDATION"
    WRONG_NETWORK_ADDRESS = "WRONG_NETWORK_ADDRESS"
    DUST = "DUST"
    INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
    TOKEN_COIN_MISSING = "TOKEN_COIN_MISSING"  # noqa: S105 - a code, not a secret
    PSBT_MISMATCH = "PSBT_MISMATCH"
    BAD_SIGNATURE = "BAD_SIGNATURE"
    WALLET_ADDRESS_MISMATCH = "WALLET_ADDRESS_MISMATCH"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"
    BACKEND_UNAVAILABLE = "BACKEND_UNAVAILABLE"
    POLICY_UNAVAILABLE = "POLICY_UNAVAILABLE"


def _cut(value: object) -> object:
    """However long a refusal's sentence, or a field's name in it, is: its beginning is read."""
    return value[:MAX_TOLD] if isinstance(value, str) else value


MAX_TOLD = 4_000
Told = Annotated[str, BeforeValidator(_cut), StringConstraints(max_length=MAX_TOLD)]
# limit, used, requested, next_reset.
Figures = Annotated[dict[Label, Label | Int64 | bool | None], Field(max_length=100)]


class FieldError(Shape):
    """One thing that is wrong, and where: ``pointer`` is a JSON pointer (RFC 6901) into the body or query."""

    pointer: Told
    code: Told
    detail: Told


class Problem(Shape):
    """The body of every error. ``trace_id`` equals the audit entry's, so that a person can quote it."""

    success: Literal[False] = False
    type: Label = "about:blank"
    title: Told
    status: Count
    detail: Told
    instance: Told = ""
    code: Label
    trace_id: Label = ""
    errors: Many[FieldError] = Field(default_factory=list)
    # Figures that some codes carry: limit, used, requested, next_reset.
    figures: Figures | None = None
