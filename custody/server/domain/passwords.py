"""What a password must be. Length is the wire shape's rule; here are the guesses that come first."""

import unicodedata

from custody.server.domain.errors import Fault, Invalid

# NIST SP 800-63B, section 3.1.1.2: refuse repetitive strings and what derives from the account's own name.
MIN_DISTINCT_CHARACTERS = 5


def normalised(password: str) -> str:
    """NFKC, so that the same key strokes on another keyboard are the same password (NIST SP 800-63B)."""
    return unicodedata.normalize("NFKC", password)


def check_new_password(password: str, email: str, field: str = "password") -> None:
    """Raises Invalid for a password that is guessed first. ``email`` is in lower case; ``field`` brought the password."""
    folded = normalised(password).lower()
    if len(set(folded)) < MIN_DISTINCT_CHARACTERS:
        raise _refused(field, "it repeats too few different characters")
    if folded in {email, email.partition("@")[0]}:
        raise _refused(field, "it is the account's own name")


def _refused(field: str, reason: str) -> Invalid:
    sentence = f"This password is guessed too easily: {reason}."
    return Invalid(sentence, faults=(Fault(f"/{field}", sentence, "weak-password"),))
