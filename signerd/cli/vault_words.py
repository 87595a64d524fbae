"""A vault in words: what is compared before it is pinned, and what is known of it afterwards."""

from typing import TYPE_CHECKING

from signerd.words import network_words

if TYPE_CHECKING:
    from signerd.shapes import CosignerView, PinPreview, VaultView

SOURCES = {"record": "the platform's record", "file": "your file", "psbt": "the PSBT's account keys"}


def vault_text(vault: "VaultView") -> str:
    """Everything that `signerd vaults` says about one vault."""
    return "\n".join((_head(vault), f"  {_standing(vault)}", *_figures(vault), *_alarms(vault)))


def preview_text(preview: "PinPreview") -> str:
    """What the person compares before typing the code."""
    source = SOURCES.get(preview.source, preview.source)
    also = "" if preview.source == "record" else ", and the platform's record says the same"
    lines = [
        _head(preview.vault),
        f"  from               {source}{also}",
        *_figures(preview.vault),
        *preview.advice,
    ]
    return "\n".join(lines)


def _head(vault: "VaultView") -> str:
    quorum = f"{vault.threshold} of {vault.signers}" if vault.signers else "not readable"
    return f"{vault.vault_id}  '{vault.name}'  {quorum}    {network_words(vault.network)}"


def _standing(vault: "VaultView") -> str:
    if not vault.pinned:
        return "not pinned: nothing of it is signed"
    known = ", known to your device" if vault.enrolled else ""
    shown = ", its first address seen there" if vault.address_shown else ", its first address NOT seen there"
    held = "; nothing of it is signed" if vault.changes else ""
    return f"PINNED{known}{shown}{held}"


def _figures(vault: "VaultView") -> list[str]:
    lines = []
    if vault.first_address is not None:
        lines.append(f"  first address      {vault.first_address}")
        lines.append(f"  verification code  {vault.verification_code}")
    if vault.account is not None:
        lines.append(f"  your key           account {vault.account}")
    if vault.cosigners:
        lines.append("  cosigners, by fingerprint (a label only: anybody can make a key that bears it)")
        lines += [f"    {_cosigner(key)}" for key in vault.cosigners]
    return lines


def _cosigner(key: "CosignerView") -> str:
    return f"{key.fingerprint}  {key.path}  {key.xpub}{'  (your device)' if key.ours else ''}"


def _alarms(vault: "VaultView") -> list[str]:
    lines = []
    if vault.renamed is not None:
        lines.append(f"  The platform calls it '{vault.renamed}' now. A name is a label only.")
    if vault.fault is not None:
        lines.append(f"  {vault.fault}")
    if vault.changes:
        lines.append(
            "  Call the other signers. Once you know what happened: `signerd unpin`, then pin it again."
        )
    return lines
