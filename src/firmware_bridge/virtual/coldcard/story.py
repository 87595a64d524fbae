"""What the screen says: every prompt of the device, as lines of text."""

from typing import Final

from firmware_bridge.virtual.coldcard.address import Chain
from firmware_bridge.virtual.coldcard.review import Review
from firmware_bridge.virtual.coldcard.wallet import Wallet, shown_fingerprint
from firmware_bridge.virtual.panel import Prompt
from multisig import PsbtOutput, ScriptKind, classify, parse_op_return

PRINTABLE: Final = range(0x20, 0x7F)
FINAL_SEQUENCE: Final = 0xFFFFFFFF
LOCKTIME_IS_TIME: Final = 500_000_000  # consensus: below it is a height

SIGN_TRANSACTION: Final = "sign-transaction"
SIGN_MESSAGE: Final = "sign-message"
ENROL_WALLET: Final = "enrol-wallet"
IMPORT_WALLET: Final = "import-wallet"
SHOW_ADDRESS: Final = "show-address"


def transaction(review: Review, chain: Chain) -> Prompt:
    """Every output that does not come back, in full; the change; the fee; what is unusual."""
    outputs = review.psbt.outputs
    lines = ["OK TO SEND?"]
    if review.wallet is not None:
        lines.append(f"Wallet: {review.wallet.name} ({review.wallet.policy})")
    if len(review.change) == len(outputs):
        lines.append("Everything comes back to this wallet")
    else:
        lines.append(f"Sending {chain.amount(review.total_sent)}")
    lines.append("Network fee unknown" if review.fee is None else f"Network fee {chain.amount(review.fee)}")
    lines.append(f"{_count(len(review.psbt.inputs), 'input')}, {_count(len(outputs), 'output')}")
    for index, output in enumerate(outputs):
        if index not in review.change:
            lines += _payment(output, chain)
    lines += [_change(outputs[index], chain) for index in sorted(review.change)]
    lines += _locktime(review)
    lines += [f"WARNING {warning}" for warning in review.warnings]
    return Prompt(SIGN_TRANSACTION, tuple(lines))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _payment(output: PsbtOutput, chain: Chain) -> list[str]:
    amount = chain.amount(output.amount)
    address = chain.address(output.script_pubkey)
    if address is not None:
        return [f"{amount} to address", address]
    if classify(output.script_pubkey) is ScriptKind.OP_RETURN:
        return [f"{amount} OP_RETURN", _data(output.script_pubkey)]
    return [f"{amount} to script", output.script_pubkey.hex()]


def _data(script: bytes) -> str:
    """The data in hex, and as text where it is text. Anything but one plain push is shown whole, in hex (S10)."""
    data = parse_op_return(script)
    if data is None:
        return f"{script[1:].hex()} (unusual script)"
    text = f" (ascii: {data.decode('ascii')})" if all(byte in PRINTABLE for byte in data) else ""
    return data.hex() + text


def _change(output: PsbtOutput, chain: Chain) -> str:
    return f"Change: {chain.amount(output.amount)} to {chain.address(output.script_pubkey)}"


def _locktime(review: Review) -> list[str]:
    locktime = review.psbt.tx.locktime
    if not locktime:
        return []
    if all(item.sequence == FINAL_SEQUENCE for item in review.psbt.inputs):
        return ["WARNING Bad locktime: it has no effect"]
    unit = "block height" if locktime < LOCKTIME_IS_TIME else "time"
    return [f"Can only be spent after {unit} {locktime}"]


def message(text: str, path: str, address: str) -> Prompt:
    return Prompt(SIGN_MESSAGE, ("OK TO SIGN THIS TEXT?", text, f"Key: {path}", f"Address: {address}"))


def wallet(kind: str, proposed: Wallet, remark: str) -> Prompt:
    """A multisig wallet to put on record. `remark` says whether it is new or like one on record."""
    lines = [
        remark,
        f"Wallet Name: {proposed.name}",
        f"Policy: {proposed.policy}",
        "Addresses: P2WSH",
        *(
            f"{shown_fingerprint(key.origin.fingerprint)} {key.origin.path} {key.xpub}"
            for key in proposed.cosigners
        ),
    ]
    return Prompt(kind, tuple(lines))


def address(text: str, details: tuple[str, ...]) -> Prompt:
    return Prompt(SHOW_ADDRESS, ("Compare this address with the one on your computer:", text, *details))
