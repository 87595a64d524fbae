"""How much the platform may make this machine keep. A journal that a platform can fill stops the signer as surely as a theft.

A platform that is honest comes near none of these; one that reaches them is told to the person as an alarm, and what it says
beyond them is left out until there is room. What this person has decided or signed is never left out for lack of room.
"""

from dataclasses import dataclass

# Proposals about which something may still be done: 1,000 of them wait in the test that is the largest workspace we know of.
MOST_OPEN = 2_000
# Of these together: all of them are in memory at once, at every start and in every round. Twice what one list is read of.
MOST_OPEN_BYTES = 256 * 1024 * 1024
# Of all that were kept and bear no signature of ours: at 20 proposals of 10 kB a day they last for 29 years.
MOST_KEPT_BYTES = 2 * 1024 * 1024 * 1024
# Ended proposals that nobody here decided about make room for new ones, so many at a time.
FORGOTTEN_AT_ONCE = 1_000
# Of what others signed and this machine never followed, which is kept for good: at 20 proposals of a kilobyte a day it lasts for 17
# years.
MOST_UNFOLLOWED_BYTES = 128 * 1024 * 1024
# What a row of it takes, with its index: of a proposal, an output or a coin.
UNFOLLOWED_ROW_BYTES = 200
# A hundred vaults in each of ten workspaces.
MOST_VAULTS = 1_000
# Each is bytecode of 80 kB and a deployment of 400 kB at most, and kept for good. A token for each vault is a thousand.
MOST_TOKENS = 1_000
# Of one pinned vault: the first is an alarm already, and nothing is signed until the person has looked.
MOST_CHANGES = 100
# Each makes some entries of the audit chain, which is never cut: about 2 kB. 1,000 proposals that go from their first
# signature to six confirmations in one day are 10,000.
MOST_WORDS_A_DAY = 20_000
DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Kept:
    """What the journal holds of the platform's proposals without a signature of ours. ``size``, ``open_size``: bytes."""

    open: int
    size: int
    open_size: int

    def why_full(self, more: int) -> str | None:
        """Why there is no room for a new proposal of so many bytes; None where there is."""
        if self.open >= MOST_OPEN:
            return f"{MOST_OPEN:,} of its proposals are open here, which is the most that are kept."
        return self.why_too_large(more)

    def why_too_large(self, more: int) -> str | None:
        """Why there is no room for so many bytes more; None where there is."""
        if self.open_size + more > MOST_OPEN_BYTES:
            return f"its open proposals take {MOST_OPEN_BYTES:,} bytes here, which is the most that they may."
        if self.size + more > MOST_KEPT_BYTES:
            return f"its proposals take {MOST_KEPT_BYTES:,} bytes here, which is the most that they may."
        return None


@dataclass
class Allowance:
    """So many a day: what is not used up comes back evenly, up to a day's."""

    a_day: int = MOST_WORDS_A_DAY
    _left: float = float(MOST_WORDS_A_DAY)
    _since: float | None = None

    def take(self, now: float) -> bool:
        """``now``: Unix seconds. False where the day's are used up. A clock that was set back gives nothing."""
        if self._since is not None:
            self._left += max(0.0, now - self._since) * self.a_day / DAY_SECONDS
        self._left = min(self._left, float(self.a_day))
        self._since = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
