"""What the screen says of a transaction. Source: `ApproveTransaction` in the firmware's `shared/auth.py`."""

from typing import Final

from device_simulators.coldcard.address import Chain
from device_simulators.coldcard.releases import Release
from device_simulators.coldcard.review import Review
from device_simulators.coldcard.story import NO, SIGN_TRANSACTION, YES
from device_simulators.panel import Prompt
from multisig import PsbtOutput, Sats, ScriptKind, classify

PRINTABLE: Final = range(0x20, 0x7F)
# Larger payments, and larger changes, are shown; of the others only the sum.
VISIBLE_PAYMENTS: Final = 10
VISIBLE_CHANGE: Final = 20
# Of longer data the firmware shows the first and the last 80 bytes.
VISIBLE_DATA: Final = 160
_END_OF_DATA: Final = 80
_PUSHES: Final = {0x4C: 1, 0x4D: 2, 0x4E: 4}


def transaction(review: Review, chain: Chain, release: Release) -> Prompt:
    """It names no wallet."""
    outputs = review.psbt.outputs
    payments = [output for index, output in enumerate(outputs) if index not in review.change]
    change = [outputs[index] for index in sorted(review.change)]
    lines = ["OK TO SEND?"]
    if warnings := len(review.warnings):
        lines.append(f"({_count(warnings, 'warning')} below)")
    if not payments:
        lines += [f"Consolidating {chain.amount(_sum(outputs))}", "within wallet."]
    else:
        lines.append(f"Sending {chain.amount(review.total_sent)}")
    if review.fee is not None:
        lines.append(f"Network fee {chain.amount(review.fee)}")
    lines += [f" {_count(len(review.psbt.inputs), 'input')}", f" {_count(len(outputs), 'output')}"]
    lines += _payments(payments, chain, release)
    if change:
        lines += _change(change, chain)
    if review.notes:
        lines += ["TX LOCKTIMES", *(f"- {note}" for note in review.notes)]
    if review.warnings:
        lines += ["---WARNING---", *(f"- {warning}" for warning in review.warnings)]
    lines.append(
        f"Press OK to approve and sign transaction. Press (2) to explore {release.explores}. X to abort."
    )
    return Prompt(SIGN_TRANSACTION, tuple(lines), NO, YES)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sum(outputs: list[PsbtOutput] | tuple[PsbtOutput, ...]) -> Sats:
    return Sats(sum(output.amount for output in outputs))


def _largest(outputs: list[PsbtOutput], count: int) -> list[PsbtOutput]:
    """In their own order where all are visible, else the largest first."""
    if len(outputs) < count:
        return outputs
    return sorted(outputs, key=lambda output: output.amount, reverse=True)[:count]


def _payments(outputs: list[PsbtOutput], chain: Chain, release: Release) -> list[str]:
    shown = _largest(outputs, VISIBLE_PAYMENTS)
    lines = [line for output in shown for line in _payment(output, chain, release)]
    if hidden := len(outputs) - len(shown):
        rest = chain.amount(Sats(_sum(outputs) - _sum(shown)))
        lines.append(f".. plus {hidden} smaller output(s), not shown here, which total: {rest}")
    return lines


def _payment(output: PsbtOutput, chain: Chain, release: Release) -> list[str]:
    amount = chain.amount(output.amount)
    address = chain.address(output.script_pubkey)
    if address is not None:
        return [amount, " - to address -", address]
    data = _op_return(output.script_pubkey, release)
    if data is not None:
        return [amount, " - OP_RETURN -", *_data(data)]
    return [amount, " - to script -", output.script_pubkey.hex()]


def _op_return(script: bytes, release: Release) -> bytes | None:
    """The first push of an OP_RETURN. Release 5.6.1 takes it for one only if nothing follows."""
    if classify(script) is not ScriptKind.OP_RETURN:
        return None
    if len(script) == 1:
        return b""
    size, at = script[1], 2
    if width := _PUSHES.get(size):
        size, at = int.from_bytes(script[2 : 2 + width], "little"), 2 + width
    elif size > max(_PUSHES):
        return None if release.shows_odd_data else b""
    if len(script) < at + size or (release.shows_odd_data and len(script) > at + size):
        return None
    return script[at : at + size]


def _data(data: bytes) -> list[str]:
    """The data in hex, and as text where it is text."""
    if not data:
        return ["null-data"]
    if len(data) > VISIBLE_DATA:
        return [data[:_END_OF_DATA].hex(), " ⋯", data[-_END_OF_DATA:].hex()]
    text = f" (ascii: {data.decode('ascii')})" if all(byte in PRINTABLE for byte in data) else ""
    return [data.hex() + text]


def _change(outputs: list[PsbtOutput], chain: Chain) -> list[str]:
    shown = _largest(outputs, VISIBLE_CHANGE)
    lines = ["Change back:", chain.amount(_sum(outputs))]
    lines.append(" - to address -" if len(shown) == 1 else " - to addresses -")
    lines += [str(chain.address(output.script_pubkey)) for output in shown]
    if hidden := len(outputs) - len(shown):
        rest = chain.amount(Sats(_sum(outputs) - _sum(shown)))
        lines.append(f".. plus {hidden} smaller change output(s), not shown here, which total: {rest}")
    return lines
