"""What a device is told about a vault: the name it may have, and the text that a Coldcard reads ("simple text" multisig file)."""

import re
import unicodedata
from collections.abc import Mapping
from functools import reduce
from operator import xor
from types import MappingProxyType
from typing import Final

from firmware_bridge.errors import Unsupported
from firmware_bridge.families import MAKERS
from firmware_bridge.model import Family
from multisig import Vault

# Coldcard: MAX_NAME_LEN of the firmware's multisig wallets. Ledger: MAX_WALLET_NAME_LENGTH of the Bitcoin app. Jade: the
# firmware's MULTISIG_NAME_MAX_LEN. BitBox02: what HWI's copy of the maker's library takes. The others keep no names.
MAX_NAMES: Final[Mapping[Family, int]] = MappingProxyType(
    {Family.COLDCARD: 20, Family.LEDGER: 64, Family.JADE: 15, Family.BITBOX02: 30}
)
_LONGEST_NAME: Final = 64
# A Coldcard takes what follows such a # in the file for a comment, and a file with such a word for a descriptor
# (shared/multisig.py, `from_simple_text`; shared/descriptor.py, `is_descriptor`; firmware 5.4.5 and 5.6.1).
_COMMENT: Final = re.compile(r"#(?!\d)")
_OPENING: Final = re.compile(r"(?<=\w)\(")
_MISREAD: Final = re.compile(rf"{_COMMENT.pattern}|(?:pkh?|tr|addr|raw|combo|sh|multi|multi_a)\(")
# The firmware's limit for the file (shared/usb.py: `100 < file_len <= 4000`).
_MAX_FILE: Final = 4000


def takes_name(family: Family, name: str) -> bool:
    """Whether devices of this make take a vault's name; those that keep none take any."""
    most = MAX_NAMES.get(family)
    if most is None:
        return True
    if family is Family.COLDCARD and _MISREAD.search(name):
        return False
    return 1 <= len(name) <= most and name.isascii() and name.isprintable() and name == name.strip()


def require_name(family: Family, name: str) -> None:
    """:raises Unsupported: no device of this make takes the name."""
    if not takes_name(family, name):
        most = MAX_NAMES[family]
        but = ', without # before a word or "(" behind one' if family is Family.COLDCARD else ""
        raise Unsupported(
            f"A {MAKERS[family].name} takes names of 1 to {most} printable ASCII characters{but}."
        )


def fitting_name(family: Family, name: str, vault: Vault) -> str:
    """The name as a device of this make can keep it: ASCII, and where it was cut, the first characters of the vault's
    verification code behind it, so that two long names do not become one.
    """
    most = MAX_NAMES.get(family, _LONGEST_NAME)
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    if family is Family.COLDCARD:
        folded = _OPENING.sub(" (", _COMMENT.sub(" ", folded))
    words = " ".join("".join(c if c.isprintable() else " " for c in folded).split())
    if words and len(words) <= most:
        return words
    code = vault.verification_code.partition("-")[0]
    # A # that has lost its digit would begin a comment.
    return f"{words[: most - len(code) - 1].rstrip(' #')} {code}".strip()


def coldcard_file(vault: Vault, name: str) -> str:
    """:raises Unsupported: the name or the vault is more than a Coldcard takes."""
    require_name(Family.COLDCARD, name)
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
