"""How much of a data output (OP_RETURN) each model's screen shows, as data. What is not listed is not known.

Read from the makers' sources at the versions named, or seen on them; a version between two that were read is taken to be like
them. The data is that of a push that holds bytes which are no printable text, as every token's payload does: a Trezor One
shows 80 bytes of plain text.
"""

import re
from dataclasses import dataclass
from typing import Final

from firmware_bridge.model import Family

Version = tuple[int, int, int]
_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class DataScreen:
    """From firmware ``since`` to ``until`` (a Ledger's: of its Bitcoin app), the models whose name begins with ``model``.

    Data of up to ``whole`` bytes is shown whole; of longer data the first ``first`` bytes, then dots.
    """

    family: Family
    model: str
    since: Version
    until: Version
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
