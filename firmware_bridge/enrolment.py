"""What a device is told about a vault (its name, and a Coldcard's "simple text" multisig file), and the
registration that a Ledger returns for one.
"""

import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Final, Protocol, Self

from firmware_bridge.errors import Unsupported
from firmware_bridge.families import maker_of
from firmware_bridge.model import Family
from multisig import Fingerprint, InvalidKey, Vault
from multisig.shown import ByMember

_LONGEST_NAME: Final = 64
# A Coldcard takes what follows such a # in the file for a comment, and a file with such a word for a
# descriptor (shared/multisig.py, `from_simple_text`; shared/descriptor.py, `is_descriptor`; firmware 5.4.5
# and 5.6.1).
_COMMENT: Final = re.compile(r"#(?!\d)")
_OPENING: Final = re.compile(r"(?<=\w)\(")
_MISREAD: Final = re.compile(rf"{_COMMENT.pattern}|(?:pkh?|tr|addr|raw|combo|sh|multi|multi_a)\(")
# The firmware's limit (shared/usb.py: `100 < file_len <= 4000`).
_MAX_FILE: Final = 4000


def require_name(family: Family, name: str) -> None:
    """:raises Unsupported: devices of this family do not accept the name. Those that keep no names accept
    any.
    """
    maker, coldcard = maker_of(family), family is Family.COLDCARD
    most = maker.max_name
    plain = name.isascii() and name.isprintable() and name == name.strip()
    if most is None or (plain and 1 <= len(name) <= most and not (coldcard and _MISREAD.search(name))):
        return
    but = ', without # before a word or "(" after one' if coldcard else ""
    raise Unsupported(f"A {maker.name} takes names of 1 to {most} printable ASCII characters{but}.")


def fitting_name(family: Family, name: str, vault: Vault) -> str:
    """The name as devices of this family accept it: ASCII, and if it was cut, followed by the start of the
    vault's verification code, so that two long names stay distinct.
    """
    most = maker_of(family).max_name or _LONGEST_NAME
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    if family is Family.COLDCARD:
        folded = _OPENING.sub(" (", _COMMENT.sub(" ", folded))
    words = " ".join("".join(c if c.isprintable() else " " for c in folded).split())
    if words and len(words) <= most:
        return words
    code = vault.verification_code.partition("-")[0]
    # A # without its digit would start a comment.
    return f"{words[: most - len(code) - 1].rstrip(' #')} {code}".strip()


def coldcard_file(vault: Vault, name: str) -> str:
    """:raises Unsupported: the name or the vault is more than a Coldcard takes."""
    require_name(Family.COLDCARD, name)
    lines = [f"Name: {name}", f"Policy: {vault.threshold} of {len(vault.cosigners)}", "Format: P2WSH"]
    for key in vault.cosigners:
        # For each key: cosigners may use different accounts.
        path = str(key.origin.path).replace("h", "'")
        lines += [f"Derivation: {path}", f"{key.fingerprint.hex.upper()}: {key.xpub}"]
    text = "\n".join(lines) + "\n"
    if len(text) > _MAX_FILE:
        raise Unsupported(
            f"A Coldcard takes {_MAX_FILE} bytes for a vault; "
            f"this one with {len(vault.cosigners)} keys is larger."
        )
    return text


def fingerprints_xor(vault: Vault) -> int:
    """How a Coldcard identifies a set of cosigners: the XOR of their fingerprints, read as little-endian
    numbers.
    """
    return reduce(xor, (int.from_bytes(bytes(key.fingerprint), "little") for key in vault.cosigners))


HMAC_BYTES: Final = 32
_VERSION: Final = 1


@dataclass(frozen=True, repr=False)
class Registration(ByMember):
    """A Ledger's proof to itself that its owner has approved this policy under this name (BIP-388). Without
    it, the person is asked again. It opens nothing, but shows which vaults a person belongs to. `vault` is
    the verification code; the proof covers `name`.
    """

    fingerprint: Fingerprint
    vault: str
    name: str
    hmac: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.hmac) != HMAC_BYTES:
            raise ValueError(f"a registration has {HMAC_BYTES} bytes, not {len(self.hmac)}")


class Registrations(Protocol):
    """A store of registrations, at most one for a device and vault. Calls must not block.

    An `OSError` of `keep` and `forget` is logged and does not fail the operation.
    """

    def find(self, fingerprint: Fingerprint, vault: str) -> Registration | None: ...

    def keep(self, registration: Registration) -> None:
        """Replaces an earlier one of the same device and vault."""

    def forget(self, registration: Registration) -> None:
        """The device no longer accepts it."""


class RegistrationsInMemory:
    """Registrations that are lost when the program ends."""

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
    """The file holds no registrations, or is of an unknown version. It was not changed."""


class RegistrationFile(RegistrationsInMemory):
    """A JSON file that only its owner may read, replaced atomically. Losing it costs one more approval per
    vault.
    """

    def __init__(self, path: Path, known: Iterable[Registration] = ()) -> None:
        super().__init__(known)
        self._path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """A missing file holds none.

        :raises UnreadableRegistrations: it cannot be read.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableRegistrations(f"{path} cannot be read: {error}") from error
        return cls(path, _decode(path, text))

    def keep(self, registration: Registration) -> None:
        super().keep(registration)
        self._write()

    def forget(self, registration: Registration) -> None:
        super().forget(registration)
        self._write()

    def _write(self) -> None:
        # mkstemp makes files that only the owner may read.
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_encode(self.all()))
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
