"""The page's sessions, kept in memory only. An entry code issued over the private socket is exchanged for a
session's secret (L4, L7, L10).
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from signerd.errors import EntryRefused

# A working day.
SESSION_SECONDS: Final = 12 * 3600.0
# After this the person is taken to have left the machine.
IDLE_SECONDS: Final = 30 * 60.0
# A person has a window or two; a session above the limit ends the least recently used one.
MAX_SESSIONS: Final = 16
TOKEN_BYTES: Final = 32

# Long enough for a slow browser's cold start, and to type ten letters.
ENTRY_SECONDS: Final = 30
# Ten letters of Crockford's alphabet: 50 bits. Wrong codes void no open one, or whoever reaches the port
# could keep the person out (L16). 10,000 guesses a second for as long as a code is good hit one of four with
# a chance of one in a thousand million.
CODE_LETTERS: Final = 10
# The person asks for each one; more at once come from a faulty script.
MAX_ENTRIES: Final = 4
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_READ_AS: Final = str.maketrans("OIL", "011", "- ")


@dataclass
class PageSession:
    """``token_hash``: SHA-256 of the secret in the session header."""

    token_hash: bytes = field(repr=False)
    begun: float
    seen: float

    def over(self, now: float) -> bool:
        return now - self.begun >= SESSION_SECONDS or now - self.seen >= IDLE_SECONDS


@dataclass(repr=False)
class PageSessions:
    """``clock``: monotonic seconds. ``random``: that many cryptographically random bytes."""

    clock: Callable[[], float]
    random: Callable[[int], bytes] = secrets.token_bytes
    _sessions: dict[bytes, PageSession] = field(default_factory=dict)
    # The expiry by the code's hash.
    _entries: dict[bytes, float] = field(default_factory=dict)

    # --- entering -------------------------------------------------------------------------------------------

    def entry(self) -> str:
        """A code valid once, for ``ENTRY_SECONDS``. Above ``MAX_ENTRIES`` the oldest becomes void."""
        self._forget_old_entries()
        while len(self._entries) >= MAX_ENTRIES:
            del self._entries[next(iter(self._entries))]
        code = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in self.random(CODE_LETTERS))
        self._entries[_hash(code)] = self.clock() + ENTRY_SECONDS
        return f"{code[:5]}-{code[5:]}"

    def enter(self, code: str) -> str:
        """The secret for the page's script; the daemon keeps only its hash. Raises EntryRefused, in the same
        words for a wrong, expired or used code.
        """
        self._forget_old_entries()
        entry = self._entries.pop(_hash(code.upper().translate(_READ_AS)), None)
        if entry is None:
            raise EntryRefused("this code is wrong, expired or already used")
        now, token = self.clock(), self.random(TOKEN_BYTES).hex()
        self._sessions = {key: one for key, one in self._sessions.items() if not one.over(now)}
        while len(self._sessions) >= MAX_SESSIONS:
            oldest = min(self._sessions.values(), key=lambda one: one.seen)
            del self._sessions[oldest.token_hash]
        self._sessions[_hash(token)] = PageSession(_hash(token), now, now)
        return token

    def _forget_old_entries(self) -> None:
        now = self.clock()
        self._entries = {code: until for code, until in self._entries.items() if now < until}

    # --- for the gate ---------------------------------------------------------------------------------------

    def find(self, token: str, *, by_itself: bool = False) -> PageSession | None:
        """Restarts the idle time, unless ``by_itself``: the page's script polls without a person."""
        session = self._standing(token)
        if session is not None and not by_itself:
            session.seen = self.clock()
        return session

    def stands(self, token: str) -> bool:
        """For an open event stream: asking does not restart the idle time."""
        return self._standing(token) is not None

    def leave(self, session: PageSession) -> None:
        self._sessions.pop(session.token_hash, None)

    def _standing(self, token: str) -> PageSession | None:
        session = self._sessions.get(_hash(token))
        return None if session is None or session.over(self.clock()) else session


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
