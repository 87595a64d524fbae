"""What is known of each maker's devices: one file of facts for each, from which presence, outcomes, limits,
hints and screens follow; and what those facts say of one model and firmware.

They guarantee nothing, and a device may lie about its version: see docs/build/devices.md.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from firmware_bridge.makers.maker import DataScreen as DataScreen
from firmware_bridge.makers.maker import Maker as Maker
from firmware_bridge.makers.versions import MAIN, FirmwareVersion
from firmware_bridge.model import Family

# The module of each family's name has its facts.
MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {family: import_module(f"{__name__}.{family}").MAKER for family in Family}
)


def data_screen(family: Family, model: str, firmware: str | None) -> DataScreen | None:
    """How much of a data output this device shows; None if it is not known for this model and version."""
    maker = MAKERS[family]
    return maker.known(maker.data_screens, model, firmware)


def why_no_proof(family: Family, model: str, firmware: str | None, *, coins: int) -> str:
    """Why this device cannot sign a proof (BIP-322) with this many coins, in words; empty if it can."""
    maker = MAKERS[family]
    known = maker.known(maker.proofs, model, firmware)
    if known is None:
        return "it is not known whether it signs messages of a vault (BIP-322), so it is not asked"
    if not known.why_not and not known.signs(coins):
        return "its screen would show all of the coins as a fee: prove the addresses alone"
    return known.why_not


def may_sign_proof(maker: str, model: str, firmware: str | None, *, coins: int) -> bool:
    """Whether this firmware, or a newer one that is known, signs it: the device may have been updated since.

    `maker`: a word such as `coldcard`, of a family or not.
    """
    version = FirmwareVersion.parse(firmware)
    rows = MAKERS[maker].proofs if maker in MAKERS else ()
    return any(
        row.signs(coins)
        and model.startswith(row.model)
        and (version is None or version.line != MAIN or version <= FirmwareVersion.of(row.until))
        for row in rows
    )


def signing_devices(*, coins: int) -> str:
    """The devices that sign a proof with this many coins: `Coldcard 5.5.1 to 5.6.1, …`."""
    able = (row for maker in MAKERS.values() for row in maker.proofs if row.signs(coins))
    return ", ".join(f"{row.model} {row.since} to {row.until}" for row in able)
