"""What a Ledger returns when it registers a vault, kept by the program: without it the person is asked again each time.

The value is the device's proof to itself that its owner has once approved this very policy under this name (BIP-388,
"Registered policies"). It opens nothing to whoever reads it, but it says which vaults a person belongs to.
"""

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, Self

from multisig import Fingerprint, InvalidKey

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
