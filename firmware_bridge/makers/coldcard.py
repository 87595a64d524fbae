"""Coldcard: all marks, and the Q."""

import re
from functools import partial
from typing import Final

from firmware_bridge import errors
from firmware_bridge.limits import SigningPace
from firmware_bridge.makers.maker import (
    NOT_KNOWN_TO_HWI,
    DataScreen,
    Maker,
    Names,
    ProofSigning,
    Style,
    UsbModel,
)
from firmware_bridge.makers.versions import MAIN
from firmware_bridge.model import Family
from multisig import Vault

# A Coldcard takes what follows such a # in the file for a comment, and a file with such a word for a
# descriptor (shared/multisig.py, `from_simple_text`; shared/descriptor.py, `is_descriptor`; firmware 5.4.5
# and 5.6.1).
_COMMENT: Final = re.compile(r"#(?!\d)")
_OPENING: Final = re.compile(r"(?<=\w)\(")
_MISREAD: Final = re.compile(rf"{_COMMENT.pattern}|(?:pkh?|tr|addr|raw|combo|sh|multi|multi_a)\(")
# The firmware's limit (shared/usb.py: `100 < file_len <= 4000`).
_MAX_FILE: Final = 4000


def vault_file(vault: Vault, name: str) -> str:
    """The vault as a Coldcard's "simple text" multisig file.

    :raises errors.Unsupported: the vault is more than a Coldcard takes.
    """
    lines = [f"Name: {name}", f"Policy: {vault.threshold} of {len(vault.cosigners)}", "Format: P2WSH"]
    for key in vault.cosigners:
        # For each key: cosigners may use different accounts.
        path = str(key.origin.path).replace("h", "'")
        lines += [f"Derivation: {path}", f"{key.fingerprint.hex.upper()}: {key.xpub}"]
    text = "\n".join(lines) + "\n"
    if len(text) > _MAX_FILE:
        raise errors.Unsupported(
            f"A Coldcard takes {_MAX_FILE} bytes for a vault; "
            f"this one with {len(vault.cosigners)} keys is larger."
        )
    return text


_usb = partial(UsbModel, Family.COLDCARD, 0xD13E)

MAKER: Final = Maker(
    "Coldcard",
    udev_rules="20-coldcard.rules",
    usb=(_usb(0xCC10, "Coldcard"), _usb(0, "Coldcard", None, product_mask=0, reason=NOT_KNOWN_TO_HWI)),
    # Q: of the Q; X: the previews ("Edge") of both, 6.x.
    lines=frozenset({MAIN, "Q", "X", "QX"}),
    # MAX_NAME_LEN of the firmware's multisig wallets.
    names=Names(
        20, _MISREAD, ', without # before a word or "(" after one', ((_COMMENT, " "), (_OPENING, " ("))
    ),
    vault_file=vault_file,
    shares_session=True,
    enrols=True,
    # It shows the address until any key is pressed.
    refuses_address=False,
    # In the maker's simulator (5.4.5): 200 s for 1.9 MB, 20 s for 391,827 bytes, 51 s for 250 inputs of a
    # 2-of-3.
    pace=SigningPace(kilobyte=0.11),
    phrases=(
        ("unknown multisig wallet", errors.NotEnrolled),
        ("do not match any existing wallet", errors.NotEnrolled),
        ("wallet with those fingerprints not found", errors.NotEnrolled),
        ("refused to import", errors.RefusedByPerson),
        # HSM mode, or a spending policy of its owner.
        ("not allowed in hsm mode", errors.Busy),
        ("spending policy", errors.Unsupported),
        ("none of the keys involved", errors.WrongDevice),
        ("framing error", errors.Busy),
        ("cannot connect to simulator", errors.Disconnected),
        ("timeout reading usb", errors.TimedOut),
        # ckcc's own words. A Coldcard speaks USB only after its PIN (start_login_sequence).
        ("doesn't have any secrets", errors.Uninitialised),
        ("device is locked", errors.Locked),
        ("open failed", errors.NoPermission),
        # The request is at fault, not the device. The first: the owner's setting, 10 % unless changed
        # (shared/psbt.py, consider_outputs), said before it asks. The last: ckcc's own check.
        ("network fee bigger than", errors.Unsupported),
        ("msg too short", errors.Unsupported),
        ("msg too long", errors.Unsupported),
        # Too many spaces together, at the beginning, or at the end.
        ("in msg", errors.Unsupported),
        ("must be ascii printable", errors.Unsupported),
        ("msg length:", errors.Unsupported),
    ),
    style=Style(
        "XTN",
        trimmed=False,
        apart=False,
        first=("Sent in all", "Network fee"),
        to_itself=("Moved within the wallet", "Network fee"),
        proof=("Message", "Coins", "Address"),
        message=("this text", "the path of your key", "its address"),
        change=True,
        idle_locktime="Locktime has no effect!",
    ),
    data_screens=(
        # Read: shared/auth.py, render_output (5.4.4, 5.4.5, 5.5.0, 5.6.1).
        DataScreen("Coldcard", "5.4.4", "5.6.1", whole=160, first=80),
    ),
    proofs=(
        # Read: shared/psbt.py, validate: txn too short, bad txn version (5.4.5).
        ProofSigning("Coldcard", "5.4.4", "5.4.5", why_not="it takes no transaction of version 0"),
        # Read: shared/auth.py, por322_msg_verify (5.5.0).
        ProofSigning(
            "Coldcard",
            "5.5.0",
            "5.5.0",
            why_not="it wants the message typed or read on the device itself, "
            "and says nothing of it over USB",
        ),
        # It shows the whole message, the address, and the sum of the coins. Read: shared/psbt.py,
        # validate_bip322_input0; shared/auth.py (5.5.1, 5.6.0, 5.6.1).
        ProofSigning("Coldcard", "5.5.1", "5.6.1", funds=True),
    ),
)
