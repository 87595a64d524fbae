"""Who proves to the host that a signature's nonce was not chosen to leak the key (S20; "Dark Skippy", 2024).

What counts is what happens over our drivers with HWI 3.2.0, and that the host *verifies* it: a nonce to which the host may
add something, unseen whether it did, proves nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firmware_bridge.advisories.advisory import MAIN, Version
from firmware_bridge.model import Device, Family

# FOLDED from firmware_bridge/data_screens.py: How much of a data output (OP_RETURN) each model's screen shows, as data. What is not listed is not known.
#
# Read from the makers' sources at the versions named, or seen on them; a version between two that were read is taken to be like
# them. The data is that of a push that holds bytes which are no printable text, as every token's payload does: a Trezor One
# shows 80 bytes of plain text.


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


_Numbers = tuple[int, int, int]
_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class DataScreen:
    """From firmware ``since`` to ``until`` (a Ledger's: of its Bitcoin app), the models whose name begins with ``model``.

    Data of up to ``whole`` bytes is shown whole; of longer data the first ``first`` bytes, then dots.
    """

    family: Family
    model: str
    since: _Numbers
    until: _Numbers
    whole: int
    first: int
    source: str


DATA_SCREENS: Final[tuple[DataScreen, ...]] = (
    DataScreen(
        Family.TREZOR,
        "Trezor One",
        (1, 8, 3),
        (1, 14, 1),
        whole=32,
        first=31,
        source="seen on 1.14.1; read: legacy/firmware/layout2.c, split_message_hex (1.8.3, 1.9.4, 1.10.5, 1.12.1, 1.13.1, 1.14.1)",
    ),
    # 87 hex digits and three dots: the last half byte is no byte.
    DataScreen(
        Family.TREZOR,
        "Trezor Model T",
        (2, 3, 0),
        (2, 3, 6),
        whole=44,
        first=43,
        source="seen on 2.3.6; read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_output (2.3.0, 2.3.6)",
    ),
    # All of it, on as many pages as it needs.
    DataScreen(
        Family.TREZOR,
        "Trezor Model T",
        (2, 6, 0),
        (2, 12, 4),
        whole=80,
        first=0,
        source="read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_blob without a cut (2.6.0, 2.8.1, 2.12.4)",
    ),
    DataScreen(
        Family.COLDCARD,
        "Coldcard",
        (5, 4, 4),
        (5, 6, 1),
        whole=160,
        first=80,
        source="read: shared/auth.py, render_output (5.4.4, 5.4.5, 5.5.0, 5.6.1)",
    ),
    DataScreen(
        Family.LEDGER,
        "Ledger",
        (2, 1, 0),
        (2, 4, 6),
        whole=80,
        first=0,
        source="read: src/common/script.c, format_opscript_script (2.1.0, 2.2.0, 2.3.0, 2.4.0, 2.4.5, 2.4.6)",
    ),
)


def data_screen(family: Family, model: str, firmware: str | None) -> DataScreen | None:
    """None where it is not known of this model and version."""
    found = _VERSION.fullmatch(firmware or "")
    if found is None:
        return None
    version = (int(found[1]), int(found[2]), int(found[3]))
    return next(
        (
            row
            for row in DATA_SCREENS
            if row.family is family and model.startswith(row.model) and row.since <= version <= row.until
        ),
        None,
    )
