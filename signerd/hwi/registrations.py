"""registerdescriptor, and displayaddress and signtx with the registration that it returns.

As in HWI after 3.2.0 (``RegisteredDescriptor``). A registration grants nothing: its vault must be pinned.
"""

import base64
import binascii
from argparse import Namespace
from dataclasses import dataclass
from typing import Any, Final, Self

from multisig import InvalidDescriptor, Network, Vault
from multisig.descriptor import MAX_CHARACTERS
from multisig.vault import RECEIVE
from multisig.wire import Reader, WireError, compact_size, with_length
from signerd.client import DaemonClient
from signerd.errors import HwiCode
from signerd.hwi.codes import FAMILIES, HwiError, not_done, unavailable
from signerd.hwi.keys import NOT_PINNED, confirmed
from signerd.hwi.listing import Chosen, present

_MAGIC: Final = b"rdesc"
_VERSION: Final = 1
# A descriptor, names, and the maker's proof (a Ledger's is 32 bytes), in base64.
_MAX_TEXT: Final = 2 * MAX_CHARACTERS


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
    vault_id, vault = pinned(daemon, chosen, args.descriptor)
    device = present(chosen)
    if args.command in FAMILIES[device.family][1]:
        raise not_done(device.family, "support registering descriptors")
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
    vault_id, vault = pinned(daemon, chosen, HwiRegistration.parse(args.registration).descriptor)
    expected = vault.address(chain, args.index)
    shown = daemon.show_vault_address(vault_id, chain=chain, index=args.index)
    return {**confirmed(shown, expected), "index": args.index, "multipath_index": chain}


def pinned(daemon: DaemonClient, chosen: Chosen, descriptor: str) -> tuple[str, Vault]:
    """The vault and its id, found by its verification code, so in any order of its keys. Raises HwiError."""
    try:
        wanted = Vault.from_descriptor(descriptor, Network(chosen.accounts.network), strict=False)
    except InvalidDescriptor as error:
        raise HwiError(f"{error} {error.hint}".strip(), HwiCode.INVALID_POLICY) from None
    for vault in daemon.vaults():
        if vault.pinned and vault.verification_code == wanted.verification_code:
            return vault.vault_id, wanted
    raise unavailable(NOT_PINNED)
