"""S12: does the transaction do what the proposal says it does? The record is a claim, the bytes are the fact."""

from collections import Counter

from multisig import MultisigError, Sats, decode_address
from signerd.core.checks.case import InspectedCase
from signerd.core.text import amount, said
from signerd.core.verdicts import Verdict, allow, refuse


def transaction_id(case: InspectedCase) -> Verdict:
    """The platform must speak of the same transaction."""
    name, txid = "transaction-id", case.psbt.tx.txid
    if txid != case.snapshot.txid_expected:
        return refuse(
            name,
            "The platform names another transaction id than the PSBT's.",
            said=case.snapshot.txid_expected,
        )
    return allow(name, "The transaction id is the one that the platform names.", txid=txid)


def payments_match(case: InspectedCase) -> Verdict:
    """Every payment goes to a recorded recipient, and every recipient is paid."""
    name = "recipients"
    try:
        recorded = Counter(_recorded_scripts(case))
    except MultisigError as error:
        return refuse(name, f"A recorded recipient is not an address of this network: {said(error)}")
    paid = Counter(payment.script_pubkey for payment in case.inspection.payments)
    own = Counter(script for script, _amount in case.returning)
    if paid - recorded:
        return refuse(name, "The transaction pays somebody whom the proposal does not name.")
    # A recipient may be the vault itself: such an output is proven ours, and counts as the payment it was meant to be.
    if (recorded - paid) - own:
        return refuse(name, "A recipient whom the proposal names is not paid.")
    return allow(name, "Exactly the recorded recipients are paid.", recipients=recorded.total())


def amounts_match(case: InspectedCase) -> Verdict:
    """Each recipient gets the recorded amount. Says nothing where ``recipients`` already refuses."""
    name, snapshot = "amounts", case.snapshot
    if len(snapshot.amounts) != len(snapshot.recipients):
        return refuse(name, "The proposal does not record one amount for each recipient.")
    try:
        recorded = Counter(zip(_recorded_scripts(case), snapshot.amounts, strict=True))
    except MultisigError:
        return refuse(name, "The recorded amounts cannot be compared: a recipient is not an address.")
    paid = Counter((payment.script_pubkey, int(payment.amount)) for payment in case.inspection.payments)
    own = Counter(case.returning)
    if paid - recorded or (recorded - paid) - own:
        return refuse(name, "An amount in the transaction differs from the one that the proposal records.")
    total = Sats(sum(snapshot.amounts))
    return allow(name, f"The amounts are the recorded ones, {amount(total)} in all.", total_sats=int(total))


def data_matches(case: InspectedCase) -> Verdict:
    """OP_RETURN data is what the proposal records, none where it records none (S10), and no token's (S12).

    A token's call moves more than its coins: as a plain payment it would be judged by the coins alone.
    """
    name, recorded = "data", case.snapshot.op_return
    carried = [output.data for output in case.inspection.op_returns]
    expected = [] if recorded is None else [_data_bytes(recorded)]
    if carried != expected:
        return refuse(
            name,
            "The data in the transaction is not the data that the proposal records.",
            carried=" ".join(data.hex() for data in carried) or "none",
        )
    if case.inspection.token_output is not None:
        return refuse(name, "The data is a token's, and the proposal does not say that it is about a token.")
    sentence = (
        "It carries no data." if not carried else f"It carries the recorded {len(carried[0])} bytes of data."
    )
    return allow(name, sentence)


def fee_matches(case: InspectedCase) -> Verdict:
    """The fee is what the proposal records."""
    name, fee = "fee-recorded", case.inspection.fee
    if fee != case.snapshot.fee:
        return refuse(
            name,
            f"The transaction pays a fee of {amount(fee)}; the proposal records another.",
            fee_sats=int(fee),
            recorded_sats=case.snapshot.fee,
        )
    return allow(name, f"The fee is the recorded one, {amount(fee)}.", fee_sats=int(fee))


def _recorded_scripts(case: InspectedCase) -> list[bytes]:
    return [decode_address(text, case.around.network) for text in case.snapshot.recipients]


def _data_bytes(recorded: str) -> bytes:
    if recorded.startswith("0x"):
        try:
            return bytes.fromhex(recorded[2:])
        except ValueError:
            return b""
    return recorded.encode()
