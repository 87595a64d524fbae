"""Converts the daemon's values into the loopback API's models (L8, S13); the screens of the signer's device
for a proposal, for comparison, too.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import DatabaseError

from custody.common.text import count
from firmware_bridge import BridgeError, Device, DeviceState, has_anti_exfil, known_flaws
from firmware_bridge.advisories import firmware_known
from firmware_bridge.missing import missing_hwi
from firmware_bridge.screens import (
    Screen,
    ShownOutput,
    ShownPayment,
    ShownProof,
    number_of_outputs,
    payment_screens,
    proof_screens,
)
from multisig import RECEIVE, Inspection, Network, OriginKey, Vault
from multisig.script import unaddressed
from signerd.account.registration import Offer
from signerd.account.vaults import SeenVault
from signerd.core.addresses import address_on_screen, on_screen
from signerd.core.audit import GENESIS, Entry, first_fault
from signerd.core.titles import Pinned
from signerd.core.values import OwnKey
from signerd.daemon.devices import name_of, screen_of
from signerd.journal.rows import audit_entries
from signerd.journal.storage import fault_of, open_to_read
from signerd.shapes import (
    AccountKeys,
    AdvisoryView,
    AuditReport,
    CosignerView,
    DeviceView,
    FigureView,
    KeyView,
    PinPreview,
    RegistrationPreview,
    ScreenView,
    VaultView,
)

# An outcome's own, and those of the two states that no outcome says anything about.
ADVICE = {
    **{outcome.state: outcome.advice for outcome in BridgeError.__subclasses__() if outcome.advice},
    DeviceState.ABSENT: "Connect it.",
    DeviceState.PRESENT: (
        "signerd has not reached it yet. If this lasts, answer no to what it still asks, or connect it again."
    ),
}

UNKNOWN_FIRMWARE = (
    "The version of its firmware is unknown, so signerd cannot say whether it has a known flaw."
)
EMULATOR = (
    "It is a program, not a hardware device: its keys are only as safe as this machine. "
    "Use it for trying out only."
)
FROM_FILES = (
    "These keys came as files, which a card or another computer may have changed: compare each with your "
    "device. Its signed message proves the first one alone."
)
UNPROVEN_NONCES = "It has no anti-exfil protocol: nothing proves that its signatures do not leak its key."
COMPARE = (
    (
        "Compare the verification code and the first address with the other signers by telephone or face to "
        "face."
    ),
    "Do not use the platform for this, nor anything else that could deceive both of you in the same way.",
    "Fingerprints are labels only: anyone can make a key with the same one. The code covers the keys.",
    "Your device shows the first address too. Confirm it there only if it is the same.",
)


def device_view(device: Device) -> DeviceView:
    """The fields of the same name are taken as they are."""
    is_without_hwi = device.state is DeviceState.UNSUPPORTED and missing_hwi(device.family)
    known = {
        **vars(device),
        "name": name_of(device),
        "family": str(device.family),
        "endpoint": str(device.endpoint),
        "state": str(device.state),
        "fingerprint": None if device.fingerprint is None else str(device.fingerprint),
    }
    # Where HWI is missing, the detail has the command to run.
    advice = None if is_without_hwi else ADVICE.get(device.state)
    return DeviceView(**known, advice=advice, advisories=_advisories(device))


def preview_view(offer: Offer, device: Device, known: int = 0) -> RegistrationPreview:
    """``known``: how many of the device's vault accounts are already registered on this machine."""
    last = len(offer.vault_keys) - 1
    more = f"Vault accounts {known} to {last} are new: each vault takes one." if 0 < known <= last else ""
    return RegistrationPreview(
        network=str(offer.network),
        device_id=device.id,
        device=name_of(device),
        fingerprint=str(offer.base.origin.fingerprint),
        keys=tuple(_key(own) for own in offer.own_keys()),
        digest=offer.digest,
        firmware=device.firmware,
        advisories=_advisories(device),
        notes=tuple(filter(None, (more, *_notes(device)))),
    )


def airgap_preview(offer: Offer, notes: tuple[str, ...]) -> RegistrationPreview:
    """For keys imported as files: this machine cannot tell from which device they come."""
    number = count(len(offer.vault_keys), "account", "accounts")
    accounts = f"There are keys of {number} for vaults: each vault takes one. More can be registered later."
    return RegistrationPreview(
        network=str(offer.network),
        device_id="",
        device="A device without a cable",
        fingerprint=str(offer.base.origin.fingerprint),
        keys=tuple(_key(own) for own in offer.own_keys()),
        digest=offer.digest,
        notes=(*notes, FROM_FILES, UNKNOWN_FIRMWARE, UNPROVEN_NONCES, accounts),
    )


def account_keys(network: Network, keys: Sequence[OwnKey]) -> AccountKeys:
    """Of one device."""
    return AccountKeys(
        network=str(network),
        fingerprint=str(keys[-1].key.origin.fingerprint) if keys else None,
        keys=tuple(_key(own) for own in keys),
    )


def _advisories(device: Device) -> tuple[AdvisoryView, ...]:
    """Known hardware flaws; an emulator has its own note instead."""
    flaws = () if device.emulator else known_flaws(device)
    return tuple(AdvisoryView.model_validate(flaw, from_attributes=True) for flaw in flaws)


def _notes(device: Device) -> tuple[str, ...]:
    """Warnings that hold whatever the advisories say (S20, S22)."""
    if device.emulator:
        return (EMULATOR,)
    said = ((not firmware_known(device), UNKNOWN_FIRMWARE), (not has_anti_exfil(device), UNPROVEN_NONCES))
    return tuple(note for applies, note in said if applies)


def _key(own: OwnKey) -> KeyView:
    origin = own.key.origin
    return KeyView(purpose=own.purpose, account=own.account, path=str(origin.path), xpub=str(own.key.xpub))


def vault_view(seen: SeenVault, network: Network) -> VaultView:
    """The fields of the same name are taken as they are."""
    vault = seen.vault
    return VaultView(
        **vars(seen),
        network=str(network),
        threshold=None if vault is None else vault.threshold,
        signers=None if vault is None else len(vault.cosigners),
        first_address=None if vault is None else vault.address(RECEIVE, 0),
        verification_code=None if vault is None else vault.verification_code,
        account=None if seen.own is None else seen.own.account,
        # In the order in which a Ledger numbers them when it registers the vault.
        cosigners=tuple(
            _cosigner(key, seen.own) for key in sorted(vault.cosigners if vault else (), key=str)
        ),
        first_on_screen=None if vault is None else on_screen(vault.script_pubkey(RECEIVE, 0), network),
        descriptor=None if vault is None else vault.descriptor,
    )


def _cosigner(key: OriginKey, own: OwnKey | None) -> CosignerView:
    return CosignerView(
        fingerprint=str(key.fingerprint),
        path=str(key.origin.path),
        xpub=str(key.xpub),
        ours=own is not None and own.key == key,
    )


def pin_preview(seen: SeenVault, source: str, network: Network) -> PinPreview:
    vault = seen.vault
    warned = () if vault is None or not vault.has_disjoint_quorums else (_disjoint(vault),)
    return PinPreview(vault=vault_view(seen, network), source=source, advice=(*COMPARE, *warned))


def _disjoint(vault: Vault) -> str:
    """S27: the person pins it all the same, or asks the others for another threshold first."""
    m, n = vault.threshold, len(vault.cosigners)
    return (
        f"WARNING: {m} of {n} signers are enough, so that two groups without a member in common can each pay "
        "the same invoice, and no machine of theirs sees both. Ask the other signers before you approve, or "
        f"have a vault of {n // 2 + 1} of {n} made."
    )


def audit_report(entries: Sequence[Entry]) -> AuditReport:
    """``entries``: the whole chain from its beginning."""
    first = first_fault(entries)
    at, fault = (None, None) if first is None else first
    head = entries[-1].digest if entries else GENESIS
    return AuditReport(entries=len(entries), head=head.hex(), at=at, fault=fault)


def report_of_file(state: Path) -> AuditReport:
    """Of the journal in this folder, without a daemon: the first fault of its chain, else of the file. Opened
    read-only, so that a damaged journal is not set aside. Raises JournalUnwritable.
    """
    with closing(open_to_read(state)) as journal:
        fault = fault_of(journal)
        try:
            report = audit_report(tuple(audit_entries(journal)))
        except (DatabaseError, ValueError, KeyError, TypeError):
            # The fault of the file says why.
            report = AuditReport(entries=0, head="", at=None, fault=None)
    return report if report.fault is not None else report.model_copy(update={"fault": fault})


# Nobody compares more on a device; the list of payments has them all.
MAX_OUTPUTS_ON_SCREENS = 250


def device_screens(
    device: Device | None, inspection: Inspection | None, pinned: Pinned
) -> tuple[tuple[ScreenView, ...], int]:
    """Empty where the device, the screens of its maker, or the fee, are not known. Also how many outputs the
    device shows beyond the `MAX_OUTPUTS_ON_SCREENS` that are written out.
    """
    if device is None or inspection is None:
        return (), 0
    if inspection.proof is not None:
        network, proof = inspection.network, inspection.proof
        shown = ShownProof(proof.message, address_on_screen(proof.address, network), int(proof.total))
        screens = proof_screens(device.family, network, shown)
        return tuple(_view(screen, {}) for screen in screens), 0
    if inspection.fee is None:
        return (), 0
    payment = _as_told(device, inspection, inspection.fee)
    screens = payment_screens(device.family, inspection.network, payment, MAX_OUTPUTS_ON_SCREENS)
    words = {on_screen(script, inspection.network): place.words for script, place in pinned.items()}
    left_out = number_of_outputs(device.family, payment) - MAX_OUTPUTS_ON_SCREENS
    return tuple(_view(screen, words) for screen in screens), max(0, left_out)


def _view(screen: Screen, words: Mapping[str | None, str]) -> ScreenView:
    return ScreenView(
        figures=tuple(
            FigureView(label=one.label, value=one.value, pinned=words.get(one.value)) for one in screen
        )
    )


def _as_told(device: Device, inspection: Inspection, fee: int) -> ShownPayment:
    network = inspection.network
    outputs = {
        paid.output_index: ShownOutput(
            int(paid.amount),
            unaddressed(paid.script_pubkey)
            if paid.address is None
            else address_on_screen(paid.address, network),
        )
        for paid in inspection.payments
    }
    for data in inspection.op_returns:
        outputs[data.output_index] = ShownOutput(0, data=_data(device, data.data))
    back = [
        ShownOutput(int(one.amount), address_on_screen(one.address, network)) for one in inspection.change
    ]
    return ShownPayment(
        [outputs[index] for index in sorted(outputs)],
        back,
        fee,
        inspection.locktime,
        inspection.locktime_holds,
    )


def _data(device: Device, data: bytes) -> str:
    """The data as shown, with dots where it is cut; in full where the screen is unknown."""
    screen = screen_of(device)
    size = len(data) if screen.whole is None else screen.shown(len(data))
    return data[:size].hex() + ("" if size == len(data) else "…")
