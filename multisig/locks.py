"""Relative locks: how old a coin must be before it may be spent (BIP-68, consensus)."""

from dataclasses import dataclass
from datetime import timedelta

_DISABLED = 1 << 31
_IN_TIME = 1 << 22
_VALUE = 0xFFFF
# Versions are unsigned here: the rule counts from 2 on.
_FIRST_VERSION = 2
UNIT = timedelta(seconds=512)


@dataclass(frozen=True, slots=True)
class RelativeLock:
    """So many blocks on top of the coin's own, or so many units of 512 seconds after it: one of both is 0."""

    blocks: int = 0
    units: int = 0

    @property
    def time(self) -> timedelta:
        return self.units * UNIT

    def __str__(self) -> str:
        if self.blocks:
            return f"{self.blocks:,} blocks" if self.blocks > 1 else "1 block"
        hours = self.time.total_seconds() / 3600
        return f"{hours:,.1f} hours ({self.units:,} units of 512 s)"


def relative_lock(sequence: int, version: int) -> RelativeLock | None:
    """What an input's sequence asks for in a transaction of this version; None where its coin need not wait."""
    value = sequence & _VALUE
    if version < _FIRST_VERSION or sequence & _DISABLED or not value:
        return None
    return RelativeLock(units=value) if sequence & _IN_TIME else RelativeLock(blocks=value)
