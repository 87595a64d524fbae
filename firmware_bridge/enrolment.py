"""A vault's name as devices take it, and the registration that a Ledger returns for a vault."""

import os
import tempfile
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, Self

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from firmware_bridge.errors import Unsupported
from firmware_bridge.makers import MAKERS
from firmware_bridge.makers.maker import Names
from firmware_bridge.model import Family
from multisig import Fingerprint, InvalidKey, Vault
from multisig.shown import ByMember

_LONGEST_NAME: Final = 64


def require_name(family: Family, name: str) -> None:
    """:raises Unsupported: devices of this family do not accept the name. Those that keep no names accept
    any.
    """
    maker = MAKERS[family]
    if maker.names is not None and not maker.names.fit(name):
        raise Unsupported(
            f"A {maker.name} takes names of 1 to {maker.names.most} printable ASCII characters"
            f"{maker.names.but}."
        )


def fitting_name(family: Family, name: str, vault: Vault) -> str:
    """The name as devices of this family accept it: ASCII, and if it was cut, followed by the start of the
    vault's verification code, so that two long names stay distinct.
    """
    names = MAKERS[family].names or Names(_LONGEST_NAME)
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    for misread, instead in names.mends:
        folded = misread.sub(instead, folded)
    words = " ".join("".join(c if c.isprintable() else " " for c in folded).split())
    if words and len(words) <= names.most:
        return words
    code = vault.verification_code.partition("-")[0]
    # A # without its digit would start a comment.
    return f"{words[: names.most - len(code) - 1].rstrip(' #')} {code}".strip()


HMAC_BYTES: Final = 32


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


@dataclass(frozen=True)
class _Row:
    fingerprint: str
    vault: str
    name: str
    hmac: str


@pydantic_dataclass(frozen=True, config=ConfigDict(strict=True))
class _Stored:
    version: Literal[1]
    registrations: list[_Row]


_STORED: Final = TypeAdapter(_Stored)


def _encode(registrations: Iterable[Registration]) -> str:
    rows = [_Row(str(item.fingerprint), item.vault, item.name, item.hmac.hex()) for item in registrations]
    return _STORED.dump_json(_Stored(1, rows), indent=1).decode() + "\n"


def _decode(path: Path, text: str) -> list[Registration]:
    try:
        return [
            Registration(Fingerprint.from_hex(row.fingerprint), row.vault, row.name, bytes.fromhex(row.hmac))
            for row in _STORED.validate_json(text).registrations
        ]
    except (ValueError, InvalidKey) as error:
        raise UnreadableRegistrations(f"{path} holds no registrations of version 1: {error}") from error
