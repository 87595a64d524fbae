"""What firmware is known to do, as data: prove its nonces (S20), and show the data of an OP_RETURN output.

Anti-exfil means that a signature's nonce was not chosen to leak the key ("Dark Skippy", 2024). It counts only
if the host verifies it, over our drivers with HWI 3.2.0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from firmware_bridge.model import Device, Family
from multisig.firmware import MAIN, Version

# The first firmware with anti-exfil. The protocols of Trezor, Coldcard, Ledger, KeepKey and Digital Bitbox
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


@dataclass(frozen=True)
class ProofSigning:
    """What the models whose name begins with ``model`` do, from firmware ``since`` to ``until`` (a Ledger's:
    of its Bitcoin app), with the PSBT of a signed message (BIP-322).

    ``control``: it signs for an address. ``funds``: for coins beside it, on a screen that a person may be
    asked to approve. ``shows``: what its screen says, or why it does not sign.
    """

    family: Family
    model: str
    since: _Numbers
    until: _Numbers
    control: bool
    funds: bool
    shows: str
    source: str


_NO_EMPTY_DATA: Final = (
    "it cannot make an output that is OP_RETURN and nothing more: it would sign another one"
)

# A device that no row tells of is not asked.
PROOF_SIGNING: Final[tuple[ProofSigning, ...]] = (
    ProofSigning(
        Family.TREZOR,
        "Trezor One",
        (1, 8, 3),
        (1, 14, 1),
        control=False,
        funds=False,
        shows=_NO_EMPTY_DATA,
        source="read: legacy/firmware/transaction.c, op_return_to_script_pubkey, which always pushes "
        "(1.14.1)",
    ),
    ProofSigning(
        Family.TREZOR,
        "Trezor",
        (2, 3, 0),
        (2, 12, 4),
        control=False,
        funds=False,
        shows=_NO_EMPTY_DATA,
        source="read: core/src/apps/bitcoin/scripts.py, output_script_paytoopreturn, which always pushes "
        "(2026-08-21)",
    ),
    ProofSigning(
        Family.COLDCARD,
        "Coldcard",
        (5, 4, 4),
        (5, 4, 5),
        control=False,
        funds=False,
        shows="it takes no transaction of version 0",
        source="read: shared/psbt.py, validate: txn too short, bad txn version (5.4.5)",
    ),
    ProofSigning(
        Family.COLDCARD,
        "Coldcard",
        (5, 5, 0),
        (5, 5, 0),
        control=False,
        funds=False,
        shows="it wants the message typed or read on the device itself, and says nothing of it over USB",
        source="read: shared/auth.py, por322_msg_verify (5.5.0)",
    ),
    ProofSigning(
        Family.COLDCARD,
        "Coldcard",
        (5, 5, 1),
        (5, 6, 1),
        control=True,
        funds=True,
        shows="the whole message, the address, and the sum of the coins",
        source="read: shared/psbt.py, validate_bip322_input0; shared/auth.py (5.5.1, 5.6.0, 5.6.1)",
    ),
    # Coins beside the address would all be shown as a fee. Nobody learns to say yes to that.
    ProofSigning(
        Family.LEDGER,
        "Ledger",
        (2, 1, 3),
        (2, 4, 6),
        control=True,
        funds=False,
        shows="a payment of 0 to OP_RETURN with a fee of 0, and not the message",
        source="read: src/common/script.c, format_opscript_script: a naked OP_RETURN is signed for BIP-322; "
        "src/handler/sign_psbt.c, display_transaction (2.1.3, 2.2.0, 2.3.0, 2.4.0, 2.4.6)",
    ),
)


def proof_signing(family: Family, model: str, firmware: str | None) -> ProofSigning | None:
    """None if it is not known for this model and version."""
    return _row(PROOF_SIGNING, family, model, firmware)


def why_no_proof(family: Family, model: str, firmware: str | None, *, coins: int) -> str:
    """Why this device signs no message for an address and so many coins, in words; empty where it does."""
    known = proof_signing(family, model, firmware)
    if known is None:
        return "it is not known whether it signs messages of a vault (BIP-322), so it is not asked"
    if not known.control:
        return known.shows
    if coins and not known.funds:
        return "its screen would show all of the coins as a fee: prove the addresses alone"
    return ""


def data_screen(family: Family, model: str, firmware: str | None) -> DataScreen | None:
    """None if it is not known for this model and version."""
    return _row(DATA_SCREENS, family, model, firmware)


_Row = TypeVar("_Row", DataScreen, ProofSigning)


def _row(rows: tuple[_Row, ...], family: Family, model: str, firmware: str | None) -> _Row | None:
    found = _VERSION.fullmatch(firmware or "")
    if found is None:
        return None
    version = (int(found[1]), int(found[2]), int(found[3]))
    return next(
        (
            row
            for row in rows
            if row.family is family and model.startswith(row.model) and row.since <= version <= row.until
        ),
        None,
    )
