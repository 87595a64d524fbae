"""Vaults and their pins."""

from typing import Literal

from signerd.shapes.common import Answer, Code, Descriptor, Request


class CosignerView(Answer):
    """A key of a vault. ``fingerprint`` is a label only: anybody can make a key that bears it (BIP-129).

    ``ours``: it is exactly a registered key of this signer's device.
    """

    fingerprint: str
    path: str
    xpub: str
    ours: bool


class VaultView(Answer):
    """A vault as it was pinned, else as the platform shows it, read by this machine.

    ``fault``: why it cannot be pinned or used. The figures are None where its descriptor cannot be read. ``account``: that
    of our own key in it. ``address_shown``: the device has shown the same first address. ``changes``: in what the platform
    has shown the pinned vault otherwise, until the person has looked and unpinned it. ``renamed``: what the platform calls
    the pinned vault now, where that is another name. ``cosigners`` is empty for an app that may not read keys.
    """

    vault_id: str
    workspace_id: int
    name: str
    network: str
    threshold: int | None
    signers: int | None
    first_address: str | None
    verification_code: str | None
    account: int | None
    pinned: bool
    enrolled: bool
    fault: str | None
    address_shown: bool = False
    cosigners: tuple[CosignerView, ...] = ()
    changes: tuple[str, ...] = ()
    renamed: str | None = None


class BroughtQuorum(Request):
    """A vault that the person has from elsewhere, as its descriptor with checksum; what read it proved it to be whole.

    ``source``: a file (a descriptor, or a record of BIP-129), or the account keys of a PSBT.
    """

    source: Literal["file", "psbt"]
    descriptor: Descriptor


class PinPreviewRequest(Request):
    brought: BroughtQuorum | None = None


class PinPreview(Answer):
    """What would be pinned, to be compared by the person; ``advice``: with whom, and how. Nothing was changed.

    ``source``: "record", "file" or "psbt"; whichever it is, the platform's record says the same.
    """

    vault: VaultView
    source: str
    advice: tuple[str, ...]


class PinRequest(Request):
    """``code``: typed by the person. ``without_device_address``: pin though the device does not show the first address."""

    code: Code
    brought: BroughtQuorum | None = None
    without_device_address: bool = False


class UnpinRequest(Request):
    """``code``: that under which the vault was pinned."""

    code: Code
