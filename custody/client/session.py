"""A signed-in session: the short access token, and what renews it."""

from dataclasses import dataclass, field

# Renew this long before the end, so that a call under way does not meet it.
RENEW_BEFORE_SECONDS = 60.0


@dataclass(frozen=True)
class Session:
    """Secrets stay out of repr. ``ends_at`` is in the caller's clock, seconds."""

    sid: str
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    ends_at: float = 0.0

    def is_due(self, now: float) -> bool:
        return not self.access_token or now >= self.ends_at - RENEW_BEFORE_SECONDS
