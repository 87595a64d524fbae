"""The text that tells a Coldcard about a vault (its "simple text" multisig file)."""

from functools import reduce
from operator import xor
from typing import Final

from firmware_bridge.errors import Unsupported
from multisig import Vault

# MAX_NAME_LEN of the firmware's multisig wallets, and its limits for the file (shared/usb.py: `100 < file_len <= 4000`).
MAX_NAME: Final = 20
_MAX_FILE: Final = 4000


def coldcard_file(vault: Vault, name: str) -> str:
    """:raises Unsupported: the name or the vault is more than a Coldcard takes."""
    if not (1 <= len(name) <= MAX_NAME and name.isascii() and name.isprintable() and name == name.strip()):
        raise Unsupported(f"A Coldcard takes names of 1 to {MAX_NAME} printable ASCII characters.")
    lines = [f"Name: {name}", f"Policy: {vault.threshold} of {len(vault.cosigners)}", "Format: P2WSH"]
    for key in vault.cosigners:
        # Repeated for each key: cosigners may use different accounts.
        path = str(key.origin.path).replace("h", "'")
        lines += [f"Derivation: {path}", f"{key.fingerprint.hex.upper()}: {key.xpub}"]
    text = "\n".join(lines) + "\n"
    if len(text) > _MAX_FILE:
        raise Unsupported(
            f"A Coldcard takes {_MAX_FILE} bytes for a vault; this one with {len(vault.cosigners)} keys is larger."
        )
    return text


def fingerprints_xor(vault: Vault) -> int:
    """How a Coldcard names a set of cosigners: the exclusive or of their fingerprints, read as little-endian numbers."""
    return reduce(xor, (int.from_bytes(bytes(key.fingerprint), "little") for key in vault.cosigners))
