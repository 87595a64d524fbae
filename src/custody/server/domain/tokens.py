"""Opaque tokens, ids, and what is kept of a secret."""

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256

from custody.server.domain.ports import RandomBytes

TOKEN_BYTES = 32
ID_BYTES = 16
OTP_DIGITS = 6


def new_token(random: RandomBytes) -> str:
    """43 characters of base64url: 256 bits."""
    return urlsafe_b64encode(random(TOKEN_BYTES)).rstrip(b"=").decode()


def new_id(random: RandomBytes) -> str:
    """32 hex digits: an id that cannot be guessed, though nothing relies on that alone."""
    return random(ID_BYTES).hex()


def token_hash(token: str) -> bytes:
    """A token has 256 random bits, so that plain SHA-256 keeps it safe at rest."""
    return sha256(token.encode()).digest()


def new_otp(random: RandomBytes) -> str:
    """Six digits; 64 bits reduced by a million leave no bias worth a thought."""
    return f"{int.from_bytes(random(8), 'big') % 10**OTP_DIGITS:0{OTP_DIGITS}d}"


def otp_hash(code: str, token_2fa: str) -> bytes:
    """Keyed by the token, which is stored nowhere: a stolen database cannot be searched for a million codes."""
    return hmac.digest(token_2fa.encode(), code.encode(), "sha256")
