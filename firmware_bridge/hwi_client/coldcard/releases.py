"""What firmware releases of a Coldcard do differently, as data: read from the maker's source, tag by tag, and seen on 5.4.5 and 5.6.1."""

from dataclasses import dataclass
from typing import Final

from hwilib.devices.ckcc.constants import MAX_TXN_LEN, MAX_TXN_LEN_MK4

# Before the Mk4 there was less memory for a transaction.
_SMALL: Final = frozenset({"mk1", "mk2", "mk3"})


@dataclass(frozen=True)
class Release:
    """`since`: the first version that does so. `unique_names`: it keeps no two wallets of one name. `collects_later`: a result is
    handed over to a later connection too, and not only on the one on which the person approved it.
    """

    since: tuple[int, ...]
    unique_names: bool
    collects_later: bool


# The newest first. In 5.6.1 both changed (`multisig.py`, `name_is_used`; `usb.py`, `ALLOWED_DOWNLOAD`); 5.6.0 is as 5.4.5.
_RELEASES: Final = (
    Release((5, 6, 1), unique_names=True, collects_later=False),
    Release((), unique_names=False, collects_later=True),
)


def release_of(firmware: str | None) -> Release:
    """What this version does; one that does not tell its version is older than all that is listed."""
    parts = (firmware or "").split(".")
    version = tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
    return next(release for release in _RELEASES if release.since <= version)


@dataclass(frozen=True)
class Versions:
    """What the device tells about itself. `label` is its own word for its model; without one it is older than the Mk4."""

    firmware: str | None = None
    label: str | None = None

    @property
    def model(self) -> str:
        return "Coldcard" if self.label is None else f"Coldcard {self.label.capitalize()}"

    @property
    def max_psbt_bytes(self) -> int:
        small = self.label is None or self.label in _SMALL
        return int(MAX_TXN_LEN if small else MAX_TXN_LEN_MK4)

    @property
    def release(self) -> Release:
        return release_of(self.firmware)
