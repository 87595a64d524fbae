"""registerdescriptor, and displayaddress and signtx with the registration that it returns.

As in HWI after 3.2.0 (``RegisteredDescriptor``). A registration grants nothing: its vault must be pinned.
"""

import base64
import binascii
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from multisig import InvalidDescriptor, MultisigError, Network, Vault
from multisig.descriptor import MAX_CHARACTERS
from multisig.vault import CHANGE, MAX_INDEX, RECEIVE
from multisig.wire import Reader, WireError, compact_size, with_length
from signerd.client import DaemonClient
from signerd.errors import HwiCode
from signerd.hwi.codes import HwiError
from signerd.hwi.keys import NOT_PINNED, confirmed
from signerd.hwi.listing import Chosen, present

_MAGIC: Final = b"rdesc"
_VERSION: Final = 1
# A descriptor, names, and the maker's proof (a Ledger's is 32 bytes), in base64.
_MAX_TEXT: Final = 2 * MAX_CHARACTERS
# Families that store no vaults: HWI refuses with the same code.
_KEEP_NONE: Final = frozenset({"trezor"})


@dataclass(frozen=True)
class HwiRegistration:
    """HWI's ``RegisteredDescriptor``. ``proof``: a Ledger's HMAC, which signerd stores itself and omits."""

    name: str
    descriptor: str
    device_type: str
    proof: bytes = b""

    def __str__(self) -> str:
        texts = (self.name.encode(), self.descriptor.encode(), self.device_type.encode(), self.proof)
        return base64.b64encode(_MAGIC + compact_size(_VERSION) + b"".join(map(with_length, texts))).decode(
            "ascii"
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises HwiError."""
        try:
            reader = Reader(base64.b64decode(text.strip()[: _MAX_TEXT + 1], validate=True))
            if reader.take(len(_MAGIC)) != _MAGIC:
                raise HwiError("Policy has invalid magic bytes")
            if reader.compact_size() != _VERSION:
                raise HwiError("Serialized policy registration has unknown version number")
            name, descriptor, device_type = (reader.sized().decode() for _ in range(3))
            return cls(name, descriptor, device_type, reader.sized())
        except (binascii.Error, WireError, UnicodeDecodeError):
            raise HwiError("the registration is not an answer of registerdescriptor") from None


def register(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, str]:
    """Register a pinned vault on the device under its pinned name, and have it show the first address."""
    chosen.require_registered()
    vault_id, vault = _pinned(daemon, chosen, args.descriptor)
    device = present(chosen)
    if device.family in _KEEP_NONE:
        raise HwiError(
            f"a {device.family} stores no descriptors: there is nothing to register",
            HwiCode.UNAVAILABLE_ACTION,
        )
    # Idempotent: an existing pin stays, and the device is asked again.
    daemon.pin(vault_id, vault.verification_code)
    return {"registration": str(HwiRegistration(args.name, vault.descriptor, device.family))}


def address(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    """An address of a registered vault."""
    chosen.require_registered()
    if args.registration is None:
        raise HwiError("Missing --registration")
    if args.index is None:
        raise HwiError("Missing --index")
    chain = RECEIVE if args.multipath_index is None else args.multipath_index
    if not 0 <= args.index <= MAX_INDEX:
        raise HwiError(f"An address index is from 0 to {MAX_INDEX}")
    if chain not in {RECEIVE, CHANGE}:
        raise HwiError("Multipath index is 0 for receiving or 1 for change")
    vault_id, vault = _pinned(daemon, chosen, HwiRegistration.parse(args.registration).descriptor)
    shown = daemon.show_vault_address(vault_id, chain=chain, index=args.index)
    return {
        **confirmed(shown, vault.address(chain, args.index)),
        "index": args.index,
        "multipath_index": chain,
    }


def require_pinned(daemon: DaemonClient, chosen: Chosen, registrations: Sequence[str]) -> None:
    """Each registration must be of a pinned vault; the PSBT's scripts tell which one it spends from. Raises
    HwiError.
    """
    for text in registrations:
        _pinned(daemon, chosen, HwiRegistration.parse(text).descriptor)


def _pinned(daemon: DaemonClient, chosen: Chosen, descriptor: str) -> tuple[str, Vault]:
    """The vault and its id, found by its verification code, so in any order of its keys. Raises HwiError."""
    try:
        wanted = Vault.from_descriptor(descriptor, Network(chosen.accounts.network), strict=False)
    except InvalidDescriptor as error:
        raise HwiError(f"{error} {error.hint}".strip(), HwiCode.INVALID_POLICY) from None
    except MultisigError as error:
        raise HwiError(str(error)) from None
    for vault in daemon.vaults():
        if vault.pinned and vault.verification_code == wanted.verification_code:
            return vault.vault_id, wanted
    raise HwiError(NOT_PINNED, HwiCode.UNAVAILABLE_ACTION)
