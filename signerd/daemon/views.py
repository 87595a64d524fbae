"""From the daemon's values to the shapes of the loopback: what every implementation of the port shows alike (L8, S13)."""

from collections.abc import Sequence
from typing import Any

from custody.schemas.proposals import TxType
from firmware_bridge import Advisory, Device, DeviceState, has_anti_exfil, known_flaws
from firmware_bridge.advisories import firmware_known
from multisig import Change, InspectedInput, Inspection, Network, OpReturn, OriginKey, Payment, Vault
from multisig.tokens import Bytecode
from signerd.account.registration import Offer
from signerd.account.vaults import SeenVault, Source
from signerd.core.audit import GENESIS, Entry, first_fault
from signerd.core.listed import ListedAddress
from signerd.core.review import Review
from signerd.core.screens import Screen
from signerd.core.states import State
from signerd.core.text import plain
from signerd.core.values import OwnKey, Pin, Record
from signerd.core.verdicts import Verdict
from signerd.daemon.token_views import token_in_short, token_view
from signerd.shapes import (
    AccountKeys,
    AdvisoryView,
    AuditReport,
    ChangeView,
    CheckView,
    CoinView,
    CosignerView,
    DataView,
    DeviceView,
    KeyView,
    MoneyView,
    PaymentView,
    PinPreview,
    ProposalLine,
    ProposalView,
    RegistrationPreview,
    VaultView,
)

# Nothing more is expected of a proposal in one of these.
ENDED = frozenset(
    {
        State.HANDED_OVER,
        State.CONFIRMED,
        State.DECLINED,
        State.EXPIRED,
        State.SUPERSEDED,
        State.WITHDRAWN,
    }
)

ADVICE = {
    DeviceState.ABSENT: "Connect it.",
    DeviceState.PRESENT: "signerd has not reached it yet. If this lasts, connect it again.",
    DeviceState.LOCKED: "Unlock it with its PIN.",
    DeviceState.WRONG_APP: "Open the Bitcoin app of the right network on it.",
    DeviceState.NEEDS_PASSPHRASE: "Enter its passphrase on the device.",
    DeviceState.BUSY: "Finish what was asked here, or close the other program that uses it. Answer no to a question that was given up.",
    DeviceState.NO_PERMISSION: "On Linux install this project's udev rules; elsewhere close other wallet programs.",
    DeviceState.UNSUPPORTED: "Update its firmware, or use another device.",
}

UNKNOWN_FIRMWARE = "Its firmware's version is not known here: whether that has a known flaw cannot be said."
UNPROVEN_NONCES = (
    "Its signatures do not prove that they leak nothing of its key: it is trusted for its random numbers."
)
COMPARE = (
    "Compare the verification code and the first address with the other signers by telephone or face to face.",
    "Do not do it over the platform, nor over anything else that could show both of you the same lie.",
    "Fingerprints are labels only: anybody can make a key that bears one. The code stands for the keys themselves.",
    "Your device shows the first address as well. Say yes there only if it is the same.",
)


def device_view(device: Device) -> DeviceView:
    return DeviceView(
        id=device.id,
        family=str(device.family),
        model=plain(device.model),
        label=None if device.label is None else plain(device.label),
        endpoint=plain(str(device.endpoint)),
        state=str(device.state),
        fingerprint=None if device.fingerprint is None else str(device.fingerprint),
        emulator=device.emulator,
        detail=None if device.detail is None else plain(device.detail),
        advice=ADVICE.get(device.state),
        firmware=_firmware(device),
        advisories=_advisories(device),
    )


def preview_view(offer: Offer, device: Device, known: int = 0) -> RegistrationPreview:
    """``known``: so many of the device's vault accounts are on this machine already."""
    return RegistrationPreview(
        network=str(offer.network),
        device_id=device.id,
        device=plain(device.label or device.model),
        fingerprint=str(offer.base.origin.fingerprint),
        keys=tuple(_key(own) for own in offer.own_keys()),
        digest=offer.digest,
        firmware=_firmware(device),
        advisories=_advisories(device),
        notes=(*_more_accounts(known, len(offer.vault_keys)), *_notes(device)),
    )


def account_keys(network: Network, keys: Sequence[OwnKey]) -> AccountKeys:
    """Of one device."""
    return AccountKeys(
        network=str(network),
        fingerprint=str(keys[-1].key.origin.fingerprint) if keys else None,
        keys=tuple(_key(own) for own in keys),
    )


def _firmware(device: Device) -> str | None:
    return None if device.firmware is None else plain(device.firmware)


def _advisories(device: Device) -> tuple[AdvisoryView, ...]:
    return tuple(_advisory(flaw) for flaw in known_flaws(device))


def _advisory(flaw: Advisory) -> AdvisoryView:
    return AdvisoryView(
        id=flaw.id, severity=str(flaw.severity), text=flaw.text, advice=flaw.advice, sources=flaw.sources
    )


def _more_accounts(known: int, offered: int) -> tuple[str, ...]:
    if not 0 < known < offered:
        return ()
    return (f"Vault accounts {known} to {offered - 1} are new: each vault takes one.",)


def _notes(device: Device) -> tuple[str, ...]:
    """What no list of flaws can say (S20, S22)."""
    said = ((not firmware_known(device), UNKNOWN_FIRMWARE), (not has_anti_exfil(device), UNPROVEN_NONCES))
    return tuple(note for applies, note in said if applies)


def _key(own: OwnKey) -> KeyView:
    origin = own.key.origin
    return KeyView(purpose=own.purpose, account=own.account, path=str(origin.path), xpub=str(own.key.xpub))


def vault_view(seen: SeenVault, network: Network) -> VaultView:
    vault = seen.vault
    return VaultView(
        vault_id=seen.vault_id,
        workspace_id=seen.workspace_id,
        name=plain(seen.name),
        network=str(network),
        threshold=None if vault is None else vault.threshold,
        signers=None if vault is None else len(vault.cosigners),
        first_address=seen.first_address,
        verification_code=None if vault is None else vault.verification_code,
        account=None if seen.own is None else seen.own.account,
        pinned=seen.pinned,
        enrolled=seen.enrolled,
        fault=None if seen.fault is None else plain(seen.fault),
        address_shown=seen.address_shown,
        cosigners=() if vault is None else tuple(_cosigner(key, seen.own) for key in vault.cosigners),
        changes=tuple(plain(sentence) for sentence in seen.changes),
        renamed=None if seen.renamed is None else plain(seen.renamed),
    )


def _cosigner(key: OriginKey, own: OwnKey | None) -> CosignerView:
    return CosignerView(
        fingerprint=str(key.fingerprint),
        path=str(key.origin.path),
        xpub=str(key.xpub),
        ours=own is not None and own.key == key,
    )


def pin_preview(seen: SeenVault, source: Source, network: Network) -> PinPreview:
    vault = seen.vault
    warned = () if vault is None or not vault.has_disjoint_quorums else (_disjoint(vault),)
    return PinPreview(vault=vault_view(seen, network), source=source.value, advice=(*COMPARE, *warned))


def _disjoint(vault: Vault) -> str:
    """S27: the person pins it all the same, or asks the others for another threshold first."""
    m, n = vault.threshold, len(vault.cosigners)
    return (
        f"WARNING: {m} of {n} signers are enough, so that two groups without a member in common can each pay the same invoice, "
        f"and no machine of theirs sees both. Ask the other signers before you approve, or have a vault of {n // 2 + 1} of {n} made."
    )


def proposal_line(record: Record, review: Review, network: Network) -> ProposalLine:
    return ProposalLine(**_judged_line(record, review, network))


def imported_proposal_line(record: Record, pin: Pin | None, network: Network) -> ProposalLine:
    """Of what was brought: by the figures that were judged when it came. ``pin``: of its vault, where that is pinned."""
    brought = record.snapshot.brought
    assert brought is not None, "only what was brought is shown so"
    return ProposalLine(**_line(record, pin, network, brought.paid, brought.fee))


def _judged_line(record: Record, review: Review, network: Network) -> dict[str, Any]:
    found = review.inspection
    paid, fee = (None, None) if found is None else (_paid(found), int(found.fee))
    token = None if found is None or review.token is None else token_in_short(found, review.token)
    return {**_line(record, review.pin, network, paid, fee), "token": token}


def _line(
    record: Record, pin: Pin | None, network: Network, paid: int | None, fee: int | None
) -> dict[str, Any]:
    snapshot = record.snapshot
    return {
        "psbt_id": record.psbt_id,
        "network": str(network),
        "workspace_id": snapshot.workspace_id,
        "vault_id": snapshot.vault_id,
        "vault_name": None if pin is None else plain(pin.name),
        "state": record.state.value,
        "reason": plain(record.reason),
        "alarm": plain(record.alarm),
        "platform_status": snapshot.status.value,
        "collected": snapshot.collected,
        "required": snapshot.required,
        "paid_sats": paid,
        "fee_sats": fee,
        "brought_by": None if snapshot.brought is None else plain(snapshot.brought.by),
        "from_profile": snapshot.is_of_profile or snapshot.kind is TxType.FORWARD,
    }


def proposal_view(record: Record, review: Review, network: Network) -> ProposalView:
    """``review`` must be of the record's snapshot: its digest is what an approval will be bound to."""
    snapshot, pin = record.snapshot, review.pin
    return ProposalView(
        **_judged_line(record, review, network),
        digest=review.digest,
        allowed=review.allowed,
        to_acknowledge=tuple(sorted(review.to_acknowledge)),
        money=None
        if review.inspection is None
        else money_view(review.inspection, review.token, review.listed, review.screen),
        checks=tuple(check_view(verdict) for verdict in review.verdicts),
        verification_code=None if pin is None else pin.vault.verification_code,
        kind=snapshot.kind.value,
        description=plain(snapshot.description),
        created_by=plain(snapshot.created_by),
        recorded_txid=None if snapshot.txid is None else plain(snapshot.txid),
        confirmations=snapshot.confirmations,
        signed_here=record.signature is not None,
    )


def money_view(
    inspection: Inspection,
    token: Bytecode | None = None,
    listed: Sequence[ListedAddress] = (),
    screen: Screen | None = None,
) -> MoneyView:
    """``token``: that of its first payload, where bytes have proven it; ``listed``: whom a deployment of it lists from the start.

    Another payload beside the first is refused, and is told in no token's decimals.
    """
    first = inspection.token_output
    return MoneyView(
        txid=inspection.txid,
        inputs=len(inspection.inputs),
        total_in_sats=int(inspection.total_in),
        payments=tuple(_payment(payment) for payment in inspection.payments),
        change=tuple(_change(change) for change in inspection.change),
        data=tuple(
            _data(output, inspection, token, listed, screen)
            if output is first
            else _data(output, inspection, screen=screen)
            for output in inspection.op_returns
        ),
        paid_sats=_paid(inspection),
        change_sats=sum(int(change.amount) for change in inspection.change),
        fee_sats=int(inspection.fee),
        fee_rate=str(inspection.fee_rate.sat_per_vb),
        vsize=inspection.vsize,
        locktime=inspection.locktime,
        replaceable=inspection.signals_rbf,
        coins=tuple(_coin(spent) for spent in inspection.inputs),
    )


def audit_report(entries: Sequence[Entry]) -> AuditReport:
    """``entries``: the whole chain from its beginning."""
    found = first_fault(entries)
    at, fault = (None, None) if found is None else found
    head = entries[-1].digest if entries else GENESIS
    return AuditReport(entries=len(entries), head=head.hex(), at=at, fault=fault)


def _paid(inspection: Inspection) -> int:
    return sum(int(payment.amount) for payment in inspection.payments)


def _coin(spent: InspectedInput) -> CoinView:
    return CoinView(txid=spent.outpoint.txid, vout=spent.outpoint.vout, amount_sats=int(spent.amount))


def _payment(payment: Payment) -> PaymentView:
    return PaymentView(
        output_index=payment.output_index,
        amount_sats=int(payment.amount),
        address=payment.address,
        script=payment.script_pubkey.hex(),
    )


def _change(change: Change) -> ChangeView:
    return ChangeView(
        output_index=change.output_index,
        amount_sats=int(change.amount),
        address=change.address,
        chain=change.chain,
        index=change.index,
    )


def _data(
    output: OpReturn,
    inspection: Inspection,
    token: Bytecode | None = None,
    listed: Sequence[ListedAddress] = (),
    screen: Screen | None = None,
) -> DataView:
    try:
        text = output.data.decode()
    except UnicodeDecodeError:
        text = ""
    readable = bool(text) and plain(text) == text
    return DataView(
        output_index=output.output_index,
        data=output.data.hex(),
        text=text if readable else None,
        token=None if output.token is None else token_view(output.token, inspection, token, listed, screen),
    )


def check_view(verdict: Verdict) -> CheckView:
    return CheckView(
        name=verdict.name,
        outcome=verdict.outcome.value,
        sentence=plain(verdict.sentence),
        acknowledge=verdict.acknowledge,
        figures={name: plain(f) if isinstance(f, str) else f for name, f in verdict.figures.items()},
    )
