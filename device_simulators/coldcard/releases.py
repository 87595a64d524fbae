"""How the firmware releases that a virtual Coldcard can have differ, as data.

Read from the maker's source at the tags v5.4.5 and v5.6.1 (`shared/auth.py`, `multisig.py`, `usb.py`,
`chains.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Release:
    """How one release behaves.

    `told`: build date, version, bootloader and build time, as `vers` answers. `unique_names`: no two wallets
    have one name, and a new name for the same keys is not taken. `leases`: `dwld` gives nothing but the
    latest result, on the link on which it was made. `guards_upload`: `upld` is busy while anything but a
    transaction is asked about, and bytes that changed while the person looked at them are not signed.
    `shows_odd_data`: an OP_RETURN that is not a single push is shown whole, not only its first push.
    `explores`: what key 2 shows of a transaction. `signs_messages`: it signs the PSBT of a message (BIP-322),
    the only kind of version 0 (`shared/psbt.py`, validate).
    """

    told: tuple[str, ...]
    unique_names: bool
    leases: bool
    guards_upload: bool
    shows_odd_data: bool
    explores: str
    signs_messages: bool


RELEASES: Final[Mapping[str, Release]] = MappingProxyType(
    {
        "5.4.5": Release(
            told=("2025-11-03", "5.4.5", "3.2.1", "20251103152700"),
            unique_names=False,
            leases=False,
            guards_upload=False,
            shows_odd_data=False,
            explores="txn outputs",
            signs_messages=False,
        ),
        "5.6.1": Release(
            told=("2026-08-20", "5.6.1", "3.2.1", "20260820133600"),
            unique_names=True,
            leases=True,
            guards_upload=True,
            shows_odd_data=True,
            explores="transaction",
            signs_messages=True,
        ),
    }
)
DEFAULT: Final = "5.4.5"
