"""What firmware is known to do, as data: prove its nonces (S20), and show the data of an OP_RETURN output.

Anti-exfil means that a signature's nonce was not chosen to leak the key ("Dark Skippy", 2024). It counts only
where our drivers, with HWI 3.2.0, verify it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firmware_bridge.model import Device, Family
from multisig.firmware import MAIN, Version

# The first firmware with anti-exfil. The protocols of Trezor, Coldcard and Ledger
# have no message for it. A Jade can do it since 0.1.24, input by input: HWI's `sign_tx` verifies nothing, and
# a whole PSBT, which our driver sends, has no field for it.
_ANTI_EXFIL: Final[Mapping[Family, Version]] = {
    # The bundled library commits, reveals and verifies for each ECDSA input and message, and stops at a
    # failure (bitbox02_lib, `btc_sign` from 9.4.0, `btc_sign_msg` from 9.5.0). Our driver refuses older
    # firmware.
    Family.BITBOX02: Version(MAIN, (9, 5, 0, 0)),
}


def has_anti_exfil(device: Device) -> bool:
    """Whether every signature's nonce is proven to include the host's part. False for unknown firmware."""
    first, version = _ANTI_EXFIL.get(device.family), Version.parse(device.family, device.firmware)
    if first is None or version is None:
        return False
    return version.line == first.line and version.numbers >= first.numbers


_Numbers = tuple[int, int, int]
_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


# Read from the makers' sources at the versions named, or seen on the devices; a version between two of them
# is assumed to be like both. The data is a push of bytes that are not printable text, as in a token's
# payload: a Trezor One shows 80 bytes of plain text.
@dataclass(frozen=True)
class DataScreen:
    """From firmware ``since`` to ``until`` (a Ledger's: of its Bitcoin app), the models whose name begins
    with ``model``.

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
        source="seen on 1.14.1; read: legacy/firmware/layout2.c, split_message_hex "
        "(1.8.3, 1.9.4, 1.10.5, 1.12.1, 1.13.1, 1.14.1)",
    ),
    # 87 hex digits and three dots: 43 whole bytes.
    DataScreen(
        Family.TREZOR,
        "Trezor Model T",
        (2, 3, 0),
        (2, 3, 6),
        whole=44,
        first=43,
        source="seen on 2.3.6; read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_output (2.3.0, 2.3.6)",
    ),
    # All of it, on several pages.
    DataScreen(
        Family.TREZOR,
        "Trezor Model T",
        (2, 6, 0),
        (2, 12, 4),
        whole=80,
        first=0,
        source="read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_blob without a cut "
        "(2.6.0, 2.8.1, 2.12.4)",
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
    """None if it is not known for this model and version."""
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
