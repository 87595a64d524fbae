"""The vault in the forms that devices without a cable take: to be enrolled from a card, or from a QR code."""

from enum import StrEnum, unique
from pathlib import Path
from typing import Final

from firmware_bridge.airgap import card, names
from firmware_bridge.enrolment import coldcard_file, fitting_name
from firmware_bridge.errors import Unsupported
from firmware_bridge.model import Family
from multisig import Vault, bsms_record


@unique
class EnrolmentForm(StrEnum):
    """How a vault is written."""

    COLDCARD = "coldcard"
    """Coldcard's own simple text, which many other devices read as well."""
    DESCRIPTOR = "descriptor"
    """An output descriptor with its checksum, receiving and change in one (BIP-380, BIP-389)."""
    BSMS = "bsms"
    """The descriptor record of BIP-129, with the first address to compare."""


_ENDINGS: Final = {
    EnrolmentForm.COLDCARD: ".txt",
    # A descriptor says no name: a Coldcard takes what stands before the first dot, and refuses more than 20 characters.
    EnrolmentForm.DESCRIPTOR: ".descriptor.txt",
    EnrolmentForm.BSMS: ".bsms",
}
# The card of a BitBox is for its backups.
_CABLE_ONLY: Final = {
    Family.TREZOR: "A Trezor",
    Family.LEDGER: "A Ledger",
    Family.KEEPKEY: "A KeepKey",
    Family.BITBOX02: "A BitBox02",
    Family.DIGITALBITBOX: "A Digital Bitbox",
}


def require_airgap(family: Family) -> None:
    """:raises Unsupported: such devices take nothing but a cable."""
    name = _CABLE_ONLY.get(family)
    if name is not None:
        raise Unsupported(f"{name} reads neither cards nor QR codes: connect it by its cable.")


def enrolment_text(vault: Vault, name: str, form: EnrolmentForm = EnrolmentForm.COLDCARD) -> str:
    """The text of the file; as a QR code, `bbqr.split(text.encode(), Content.TEXT)`. The name is made to fit a Coldcard.

    :raises Unsupported: the vault is more than a Coldcard takes.
    """
    match form:
        case EnrolmentForm.COLDCARD:
            return coldcard_file(vault, fitting_name(Family.COLDCARD, name, vault))
        case EnrolmentForm.DESCRIPTOR:
            return f"{vault.descriptor}\n"
        case EnrolmentForm.BSMS:
            return bsms_record(vault)


def write_enrolment(
    vault: Vault, name: str, folder: Path, form: EnrolmentForm = EnrolmentForm.COLDCARD
) -> Path:
    """Write the vault to a card's folder, under a name made of its own that a Coldcard takes for the vault's. The file's path.

    :raises Unsupported: as `enrolment_text`.
    :raises NameTaken: another file has that name.
    :raises NoCard, CardProtected, CardFault: the folder cannot be written.
    """
    text = enrolment_text(vault, name, form)
    label = names.safe_label(fitting_name(Family.COLDCARD, name, vault))
    return card.write(folder, label + _ENDINGS[form], text.encode())
