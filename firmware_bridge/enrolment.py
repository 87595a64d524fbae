"""What a device is told about a vault: the name it may have, and the text that a Coldcard reads ("simple text" multisig file)."""

import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, Self

from firmware_bridge.errors import Unsupported
from firmware_bridge.families import MAKERS
from firmware_bridge.model import Family
from multisig import Fingerprint, InvalidKey, Vault

# FOLDED from firmware_bridge/registrations.py: What a Ledger returns when it registers a vault, kept by the program: without it the person is asked again each time.
#
# The value is the device's proof to itself that its owner has once approved this very policy under this name (BIP-388,
# "Registered policies"). It opens nothing to whoever reads it, but it says which vaults a person belongs to.


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


HMAC_BYTES: Final = 32
_VERSION: Final = 1


@dataclass(frozen=True)
class Registration:
    """`vault` is the vault's verification code; `name` is covered by the proof and belongs to it."""

    fingerprint: Fingerprint
    vault: str
    name: str
    hmac: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.hmac) != HMAC_BYTES:
            raise ValueError(f"a registration has {HMAC_BYTES} bytes, not {len(self.hmac)}")


class Registrations(Protocol):
    """Where a program keeps them. Each call is quick; one device and vault have at most one.

    An `OSError` of `keep` and `forget` is logged and ends no operation: what the person did on the device stands.
    """

    def find(self, fingerprint: Fingerprint, vault: str) -> Registration | None: ...

    def keep(self, registration: Registration) -> None:
        """In place of an earlier one of the same device and vault."""

    def forget(self, registration: Registration) -> None:
        """The device does not take it any more."""


class RegistrationsInMemory:
    """For as long as the program runs."""

    def __init__(self, known: Iterable[Registration] = ()) -> None:
        self._known = {(item.fingerprint, item.vault): item for item in known}

    def find(self, fingerprint: Fingerprint, vault: str) -> Registration | None:
        return self._known.get((fingerprint, vault))

    def keep(self, registration: Registration) -> None:
        self._known[registration.fingerprint, registration.vault] = registration

    def forget(self, registration: Registration) -> None:
        if self.find(registration.fingerprint, registration.vault) == registration:
            del self._known[registration.fingerprint, registration.vault]

    def all(self) -> tuple[Registration, ...]:
        return tuple(self._known.values())


class UnreadableRegistrations(Exception):
    """The file holds no registrations, or not of a version that this program knows. It was left as it is."""


class RegistrationFile:
    """A JSON file that its owner alone may read, replaced whole at each change. Losing it costs a person one more look."""

    def __init__(self, path: Path, known: RegistrationsInMemory) -> None:
        self._path = path
        self._known = known

    @classmethod
    def open(cls, path: Path) -> Self:
        """A file that is not there yet holds none.

        :raises UnreadableRegistrations: it cannot be read.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls(path, RegistrationsInMemory())
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableRegistrations(f"{path} cannot be read: {error}") from error
        return cls(path, RegistrationsInMemory(_decode(path, text)))

    def find(self, fingerprint: Fingerprint, vault: str) -> Registration | None:
        return self._known.find(fingerprint, vault)

    def keep(self, registration: Registration) -> None:
        self._known.keep(registration)
        self._write()

    def forget(self, registration: Registration) -> None:
        self._known.forget(registration)
        self._write()

    def _write(self) -> None:
        # mkstemp makes files that others may not read.
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_encode(self._known.all()))
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _encode(registrations: Iterable[Registration]) -> str:
    listed = [
        {
            "fingerprint": str(item.fingerprint),
            "vault": item.vault,
            "name": item.name,
            "hmac": item.hmac.hex(),
        }
        for item in registrations
    ]
    return json.dumps({"version": _VERSION, "registrations": listed}, indent=1) + "\n"


def _decode(path: Path, text: str) -> list[Registration]:
    try:
        match json.loads(text):
            case {"version": 1, "registrations": [*listed]}:
                return [_registration(item) for item in listed]
    except (ValueError, InvalidKey, RecursionError) as error:
        raise UnreadableRegistrations(f"{path} holds no registrations: {error}") from error
    raise UnreadableRegistrations(f"{path} holds no registrations of version {_VERSION}")


def _registration(item: object) -> Registration:
    match item:
        case {
            "fingerprint": str() as master,
            "vault": str() as vault,
            "name": str() as name,
            "hmac": str() as hmac,
        }:
            return Registration(Fingerprint.from_hex(master), vault, name, bytes.fromhex(hmac))
        case _:
            raise ValueError("one of them is incomplete")
