"""Codes of an authenticator: HMAC-SHA-1 over 30-second steps, six digits (RFC 6238, RFC 4226)."""

from base64 import b32encode
from datetime import datetime
from hmac import compare_digest
from typing import Final

import pyotp

STEP_SECONDS: Final = 30
# RFC 6238, section 5.2: one step either way for the phone's clock and the person's typing.
SKEW_STEPS: Final = 1
# RFC 4226, section 4, R6: 160 bits.
SECRET_BYTES: Final = 20
# What the app shows above the code.
ISSUER: Final = "Custody"


def step_at(moment: datetime) -> int:
    return int(moment.timestamp()) // STEP_SECONDS


def code_at(secret: bytes, step: int) -> str:
    return pyotp.HOTP(base32(secret)).at(step)


def find_step(secret: bytes, code: str, now: datetime, last_step: int | None) -> int | None:
    """The step near ``now`` whose code this is, after ``last_step``: no code is accepted twice (RFC 6238,
    section 5.2).
    """
    current = step_at(now)
    first = current - SKEW_STEPS if last_step is None else max(current - SKEW_STEPS, last_step + 1)
    matching = [
        step
        for step in range(max(first, 0), current + SKEW_STEPS + 1)
        if compare_digest(code_at(secret, step).encode(), code.encode())
    ]
    return matching[0] if matching else None


def base32(secret: bytes) -> str:
    """The secret for typing by hand, where the QR code cannot be scanned."""
    return b32encode(secret).decode()


def enrolment_uri(secret: bytes, email: str) -> str:
    """``otpauth://totp/…``, which authenticators read as a QR code."""
    return pyotp.TOTP(base32(secret)).provisioning_uri(name=email, issuer_name=ISSUER)
