"""Opaque tokens, ids, and what is kept of a secret."""

import hmac
import re
from base64 import b32encode, urlsafe_b64encode
from hashlib import sha256

from custody.server.domain.ports import RandomBytes

TOKEN_BYTES = 32
ID_BYTES = 16
OTP_DIGITS = 6
# 80 bits, sixteen characters of base32: nobody guesses one, so that plain SHA-256 keeps it and no slow hash is needed.
RECOVERY_BYTES = 10
RECOVERY_CODES = 10


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


def new_recovery_code(random: RandomBytes) -> str:
    """``abcd-efgh-ijkl-mnop``: written on paper, typed by hand, good once."""
    text = b32encode(random(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def recovery_hash(code: str) -> bytes:
    return token_hash(plain_code(code))


def plain_code(typed: str) -> str:
    """A code without the gaps that people and papers put into it."""
    return re.sub(r"[\s-]", "", typed).lower()


def session_id(sid: str) -> str:
    """What a session is called in lists. ``sid`` itself renews the session together with its cookie, so it stays out."""
    return sha256(b"session-id" + sid.encode()).hexdigest()[: 2 * ID_BYTES]
