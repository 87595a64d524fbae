"""From proposals to their shapes, for the page, the terminal and ``/v1`` (L8, S13). An app sees only its own
PSBTs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from custody.common.text import amount, count, plain
from custody.schemas.proofs import block_named
from custody.schemas.proposals import TxType
from firmware_bridge import Device
from multisig import RECEIVE, Inspection, Network, OpReturn, Payment, ProvenChange
from multisig.inspection import ProofOfControl
from multisig.tokens import Bytecode, Payload, TokenCall, format_units, token_words
from signerd.core.addresses import address_on_screen, on_screen
from signerd.core.checks.case import Verdict
from signerd.core.checks.table import CHECKS
from signerd.core.declining import on_decline
from signerd.core.review import ProposalReview
from signerd.core.states import State
from signerd.core.text import moment_of
from signerd.core.titles import NOT_JUDGED, Labels, Pinned, labels_paid, memo_of, proposer_of, title_of
from signerd.core.tokens import ModelScreen, hidden_parts, screen_words
from signerd.core.values import Pin, Record
from signerd.daemon.views import device_screens
from signerd.journal.apps import ImportedEntry
from signerd.shapes import (
    ChangeView,
    CheckView,
    CoinView,
    DataView,
    DeclineView,
    ImportedLine,
    ListedView,
    MoneyView,
    PaymentView,
    ProofView,
    ProposalLine,
    ProposalView,
    PsbtReview,
    TokenView,
    TroubleView,
)

NOT_TOLD = "What this check found is for the person alone."


@dataclass(frozen=True)
class Names:
    """What this machine calls addresses, by output script: the address book, and those of vaults pinned here.
    Both are empty for an app.
    """

    labels: Labels = field(default_factory=dict)
    pinned: Pinned = field(default_factory=dict)


NO_NAMES = Names()


def proposal_line(record: Record, review: ProposalReview, names: Names = NO_NAMES) -> ProposalLine:
    return ProposalLine(**_judged_line(record, review, names))


def imported_proposal_line(record: Record, pin: Pin | None, network: Network) -> ProposalLine:
    """The line of an imported PSBT, with the figures from its import. ``pin``: of its vault, if pinned."""
    imported = record.snapshot.imported
    assert imported is not None, "called for imported PSBTs only"
    line = _line(record, pin, network, imported.paid, imported.fee)
    return ProposalLine(**line, title=imported.title or NOT_JUDGED)


def _judged_line(record: Record, review: ProposalReview, names: Names) -> dict[str, Any]:
    inspection = review.inspection
    paid, fee = (None, None) if inspection is None else paid_and_fee(inspection)
    token = None if inspection is None or review.token is None else token_in_short(inspection, review.token)
    return {
        **_line(record, review.pin, review.network, paid, fee),
        "token": token,
        "title": title_of(review, names.labels, names.pinned),
        "labels": labels_paid(review, names.labels),
        "held": review.allowed and bool(review.to_acknowledge),
    }


def _line(
    record: Record, pin: Pin | None, network: Network, paid: int | None, fee: int | None
) -> dict[str, Any]:
    snapshot = record.snapshot
    return {
        "psbt_id": record.psbt_id,
        "network": str(network),
        "workspace_id": snapshot.workspace_id,
        "vault_id": snapshot.vault_id,
        "vault_name": None if pin is None else pin.name,
        "state": record.state.value,
        "reason": record.reason,
        "alarm": record.alarm,
        "platform_status": snapshot.status.value,
        "collected": snapshot.collected,
        "required": snapshot.required,
        "paid_sats": paid,
        "fee_sats": fee,
        "imported_by": None if snapshot.imported is None else snapshot.imported.by,
        "from_profile": snapshot.is_of_profile or snapshot.kind is TxType.FORWARD,
        "memo": memo_of(snapshot.description),
        "proposed_by": proposer_of(
            snapshot.created_by_name, snapshot.created_by, imported=snapshot.imported is not None
        ),
        "proposed_at": snapshot.created_at or None,
        "declines": tuple(DeclineView.model_validate(one, from_attributes=True) for one in snapshot.declines),
        "declined": None if record.decline is None else record.decline.reason,
        "on_decline": on_decline(record, pin),
        "signed_here": record.signature is not None,
        "exported_here": record.exported is not None,
        "trouble": snapshot.trouble and TroubleView.model_validate(snapshot.trouble, from_attributes=True),
    }


def proposal_view(
    record: Record, review: ProposalReview, names: Names = NO_NAMES, device: Device | None = None
) -> ProposalView:
    """``review`` must be of the record's snapshot: an approval is bound to its digest. ``device``: the
    signer's, if connected.
    """
    snapshot, pin = record.snapshot, review.pin
    screens, left_out = device_screens(device, review.inspection, names.pinned)
    return ProposalView(
        **_judged_line(record, review, names),
        **_verdict(review),
        digest=review.digest,
        money=_money(review, names),
        verification_code=None if pin is None else pin.vault.verification_code,
        kind=snapshot.kind.value,
        description=snapshot.description,
        created_by=snapshot.created_by,
        recorded_txid=snapshot.txid,
        confirmations=snapshot.confirmations,
        screens=screens,
        outputs_left_out=left_out,
    )


def _money(review: ProposalReview, names: Names) -> MoneyView | None:
    """None where it was not inspected. A second payload is refused, and shown in raw units."""
    inspection = review.inspection
    if inspection is None:
        return None
    first, proof = inspection.token_output, inspection.proof
    # The first input of a message spends an output that does not exist.
    spent = inspection.inputs if proof is None else inspection.inputs[1:]
    return MoneyView(
        txid=inspection.txid,
        inputs=len(spent),
        total_in_sats=inspection.total_in,
        payments=tuple(_payment(payment, inspection.network, names) for payment in inspection.payments),
        change=tuple(_change(change, inspection.network) for change in inspection.change),
        data=tuple(
            _data(output, inspection, review if output is first else replace(review, token=None, listed=()))
            for output in inspection.op_returns
        ),
        paid_sats=_paid(inspection),
        change_sats=sum(int(change.amount) for change in inspection.change),
        fee_sats=inspection.fee,
        fee_rate=None if inspection.fee_rate is None else str(inspection.fee_rate.sat_per_vb),
        vsize=inspection.vsize,
        version=inspection.version,
        locktime=inspection.locktime,
        replaceable=inspection.signals_rbf,
        coins=tuple(
            CoinView(txid=coin.outpoint.txid, vout=coin.outpoint.vout, amount_sats=coin.amount)
            for coin in spent
        ),
        proof=None if proof is None else _proof(proof, inspection.network),
    )


def _proof(proof: ProofOfControl, network: Network) -> ProofView:
    addresses = {proof.address, *(coin.address for coin in proof.coins)}
    what, block = count(len(addresses), "address", "addresses"), block_named(proof.message)
    if proof.coins:
        what = f"{what}, and of {count(len(proof.coins), 'coin', 'coins')} of {amount(proof.total)} in all"
    at = "" if block is None else f", at block {block[0]:,} by its own word"
    return ProofView(
        sentence=f"It proves control of {what}{at}.",
        message=proof.message,
        address=proof.address,
        on_screen=address_on_screen(proof.address, network),
    )


def paid_and_fee(inspection: Inspection) -> tuple[int | None, int | None]:
    """In satoshis, for a list: a message has no fee, and of a payment whose fee is not known neither is."""
    if inspection.proof is not None:
        return _paid(inspection), None
    return None if inspection.fee is None else _paid(inspection), inspection.fee


def _paid(inspection: Inspection) -> int:
    return sum(int(payment.amount) for payment in inspection.payments)


def _payment(payment: Payment, network: Network, names: Names) -> PaymentView:
    place = names.pinned.get(payment.script_pubkey)
    return PaymentView(
        output_index=payment.output_index,
        amount_sats=int(payment.amount),
        address=payment.address,
        script=payment.script_pubkey.hex(),
        label=names.labels.get(payment.script_pubkey),
        on_screen=on_screen(payment.script_pubkey, network),
        pinned=None if place is None else place.words,
    )


def _change(change: ProvenChange, network: Network) -> ChangeView:
    return ChangeView(
        output_index=change.output_index,
        amount_sats=int(change.amount),
        address=change.address,
        chain=change.chain,
        index=change.index,
        on_screen=address_on_screen(change.address, network),
    )


def _data(output: OpReturn, inspection: Inspection, review: ProposalReview) -> DataView:
    try:
        text = output.data.decode()
    except UnicodeDecodeError:
        text = ""
    readable = bool(text) and plain(text) == text
    return DataView(
        output_index=output.output_index,
        data=output.data.hex(),
        text=text if readable else None,
        token=None if output.token is None else _token(output.token, inspection, review),
    )


def imported_line(
    entry: ImportedEntry, vault_name: str | None, network: Network, *, whole: bool
) -> ImportedLine:
    """Without a review. ``vault_name``: of the pinned vault; ``whole``: as in ``psbt_review``."""
    return ImportedLine(
        psbt_id=entry.psbt_id,
        network=str(network),
        imported_by=entry.imported.by,
        state=entry.state.value,
        reason=entry.reason if whole or entry.state is not State.REFUSED else NOT_TOLD,
        vault_id=entry.vault_id or None,
        vault_name=vault_name,
        paid_sats=entry.imported.paid,
        fee_sats=entry.imported.fee,
        expires_at=moment_of(datetime.fromtimestamp(entry.imported.expires_at, UTC)),
    )


def psbt_review(review: ProposalReview, proposal_id: str | None, names: Names, *, whole: bool) -> PsbtReview:
    """``whole``: for the person. An app does not see other proposals, what was spent, or the names, and no
    importer how much the person's device shows.
    """
    return PsbtReview(
        network=str(review.network),
        vault_id=review.snapshot.vault_id or None,
        vault_name=None if review.pin is None else review.pin.name,
        **_verdict(review, whole=whole),
        money=_money(replace(review, screen=None), names),
        proposal_id=proposal_id,
        title=title_of(review, names.labels, names.pinned),
    )


def _verdict(review: ProposalReview, *, whole: bool = True) -> dict[str, Any]:
    return {
        "allowed": review.allowed,
        "to_acknowledge": tuple(sorted(review.to_acknowledge)),
        "checks": _checks(review.verdicts, whole=whole),
    }


def _checks(verdicts: Sequence[Verdict], *, whole: bool) -> tuple[CheckView, ...]:
    """``whole`` as in ``psbt_review``: an app is not told what a private check found."""
    views = (CheckView.model_validate(verdict, from_attributes=True) for verdict in verdicts)
    return tuple(_not_told(view) if CHECKS[view.name].private and not whole else view for view in views)


def refusal_words(review: ProposalReview, *, whole: bool) -> str:
    """The sentences and names of the refusals; ``whole`` as in ``psbt_review``."""
    checks = _checks(review.refusals, whole=whole)
    return " ".join(f"{check.sentence} [{check.name}]" for check in checks)


def for_an_app(view: ProposalView, review: ProposalReview, hides: Callable[[str], bool]) -> ProposalView:
    """L13: hide the verdicts that name another app's PSBT.

    Found by the verdicts' figures, because sentences are cut where they are long. ``review``: the review of
    ``view``.
    """
    named = (str(verdict.figures.get("proposals", "")).split(", ") for verdict in review.verdicts)
    pairs = zip(named, view.checks, strict=True)
    checks = tuple(_not_told(check) if any(map(hides, filter(None, ids))) else check for ids, check in pairs)
    return view.model_copy(update={"checks": checks})


def _not_told(check: CheckView) -> CheckView:
    return check.model_copy(update={"sentence": NOT_TOLD, "figures": {}})


def _token(payload: Payload, inspection: Inspection, review: ProposalReview) -> TokenView:
    """Amounts are raw units where the token is not proven: its decimals could make a large one look small."""
    token, screen = review.token, review.screen
    words = token_words(payload, inspection.network, token)
    return TokenView(
        sentence=words.sentence,
        details=words.details,
        hex=words.hex,
        on_screen=_on_screen(words.hex, screen),
        not_on_screen=hidden_parts(payload, screen),
        notes=(screen_words(payload, screen), *_return_notes(inspection)),
        listed=tuple(ListedView(address=one.address, name=one.name or None) for one in review.listed),
        listed_hash=token.whitelist_hash.hex() if token is not None and review.listed else None,
        **({} if token is None else _proven(token)),
    )


def token_in_short(inspection: Inspection, token: Bytecode) -> str:
    """For a list: "token GOLD: transfer 12.50". ``token``: the proven token of the first payload."""
    output = inspection.token_output
    assert output is not None, "a token is proven for a payload only"
    payload = output.token
    what = payload.function.wire_name.replace("_", " ") if isinstance(payload, TokenCall) else "a new one"
    if isinstance(payload, TokenCall) and payload.amount is not None:
        what = f"{what} {format_units(payload.amount, token.decimals)}"
    return f"token {token.ticker}: {what}"


def _on_screen(payload: str, screen: ModelScreen | None) -> str | None:
    if screen is None or screen.whole is None:
        return None
    return payload[: 2 * screen.shown(len(payload) // 2)]


def _proven(token: Bytecode) -> dict[str, Any]:
    return {
        "proven": True,
        "name": token.name,
        "ticker": token.ticker,
        "decimals": token.decimals,
        "first_supply": format_units(token.total_supply, token.decimals),
        "max_supply": format_units(token.max_supply, token.decimals),
    }


def _return_notes(inspection: Inspection) -> tuple[str, ...]:
    """Devices recognise change by its chain, and may show change to a receive address as a payment."""
    return tuple(
        f"Your device may show {amount(back.amount)} as a payment to "
        f"{address_on_screen(back.address, inspection.network)}: "
        "it is the vault's own address, to which what is left returns."
        for back in inspection.change
        if back.chain == RECEIVE
    )
