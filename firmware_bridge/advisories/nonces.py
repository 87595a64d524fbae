"""Who proves to the host that a signature's nonce was not chosen to leak the key (S20; "Dark Skippy", 2024).

What counts is what happens over our drivers with HWI 3.2.0, and that the host *verifies* it: a nonce to which the host may
add something, unseen whether it did, proves nothing.
"""

from collections.abc import Mapping
from typing import Final

from firmware_bridge.advisories.version import MAIN, Version
from firmware_bridge.model import Device, Family

# The first firmware with it; None: not over HWI 3.2.0.
ANTI_EXFIL: Final[Mapping[Family, Version | None]] = {
    # No message for it in any of these makers' protocols.
    Family.TREZOR: None,
    Family.COLDCARD: None,
    Family.LEDGER: None,
    Family.KEEPKEY: None,
    Family.DIGITALBITBOX: None,
    # The bundled library commits, reveals and verifies for each ECDSA input and message, and one that fails ends the signing
    # (bitbox02_lib, `btc_sign` from 9.4.0, `btc_sign_msg` from 9.5.0). Our driver refuses firmware that says it is older.
    Family.BITBOX02: Version(MAIN, (9, 5, 0, 0)),
    # It can, input by input (firmware 0.1.24). HWI's `sign_tx` sends random numbers for it and verifies nothing, and a whole
    # PSBT, which is what our driver sends, has no place for it.
    Family.JADE: None,
}


def has_anti_exfil(device: Device) -> bool:
    """Whether every signature of this device is proven to have the host's part in its nonce. Unknown firmware has not."""
    first, version = ANTI_EXFIL[device.family], Version.parse(device.family, device.firmware)
    if first is None or version is None:
        return False
    return version.line == first.line and version.numbers >= first.numbers
