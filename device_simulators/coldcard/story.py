"""What the screen of a Mk4 says: the texts of firmware 5.6.1, without blank lines and without the
wrapping.

Source: `shared/auth.py` (`ApproveMessageSign`, `ShowAddressBase`, `ApproveTransaction`, `done_signing`) and
`shared/multisig.py` (`confirm_import`, `show_detail`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.review import ColdcardReview
from device_simulators.coldcard.wallet import ColdcardWallet, Comparison, shown_fingerprint
from device_simulators.panel import Prompt
from multisig import (
    Network,
    PsbtOutput,
    Sats,
    encode_address,
    format_btc,
    hash160,
    p2pkh,
    p2sh,
    p2wpkh,
    parse_op_return,
)


class Format(IntEnum):
    """hwilib `ckcc/constants.py`: AF_CLASSIC and its siblings."""

    P2PKH = 0x01
    P2WPKH = 0x07
    P2WPKH_IN_P2SH = 0x13
    P2WSH = 0x0E


# First byte of a 65-byte message signature before the recovery id is added (BIP-137).
MESSAGE_HEADERS = {Format.P2PKH: 31, Format.P2WPKH_IN_P2SH: 35, Format.P2WPKH: 39}


@dataclass(frozen=True)
class ColdcardChain:
    """What the device is set to in its menu ("Testnet Mode"). `name` is what `blkc` answers, and the unit
    after every amount; `network` is the one whose forms of keys and addresses it uses.
    """

    name: str
    network: Network

    def address(self, script_pubkey: bytes) -> str | None:
        """The address, or None for a script that has none."""
        return encode_address(script_pubkey, self.network)

    def amount(self, value: Sats) -> str:
        return f"{format_btc(value)} {self.name}"


BITCOIN = ColdcardChain("BTC", Network.MAINNET)
TESTNET = ColdcardChain("XTN", Network.TESTNET4)
REGTEST = ColdcardChain("XRT", Network.REGTEST)


def chain_for(network: Network) -> ColdcardChain:
    """As its owner sets it for this network. Every test network is used with the setting "Testnet4", and its
    addresses' form.
    """
    return BITCOIN if network is Network.MAINNET else TESTNET


def single_key_format(number: int) -> Format:
    """Raises CommandRefused for formats of scripts, and for those this device does not know."""
    try:
        chosen = Format(number)
    except ValueError:
        chosen = Format.P2WSH
    if chosen not in MESSAGE_HEADERS:
        raise CommandRefused("Unknown/unsupported addr format")
    return chosen


def single_key_script(public_key: bytes, chosen: Format) -> bytes:
    """The output script that pays one key in this format."""
    if chosen is Format.P2PKH:
        return p2pkh(hash160(public_key))
    if chosen is Format.P2WPKH:
        return p2wpkh(public_key)
    return p2sh(hash160(p2wpkh(public_key)))


NO: Final = "X"
YES: Final = "OK"
ENROL_WALLET: Final = "enrol-wallet"
IMPORT_WALLET: Final = "import-wallet"
SIGN_TRANSACTION: Final = "sign-transaction"
SIGN_MESSAGE: Final = "sign-message"
SHOW_ADDRESS: Final = "show-address"
WALLET_KEYS: Final = "wallet-keys"
SIGNED: Final = "signed"
FAILURE: Final = "failure"


def message(text: str, path: str, address: str) -> Prompt:
    lines = (
        "Ok to sign this?",
        "      --=--",
        text,
        "      --=--",
        "Using the key associated with address:",
        f"{path} =>",
        address,
        "Press OK to continue, otherwise X to cancel.",
    )
    return Prompt(SIGN_MESSAGE, lines, NO, YES)


def wallet(kind: str, proposed: ColdcardWallet, comparison: Comparison) -> Prompt:
    """A multisig wallet to put on record. Its keys are shown on key 1 only: see `wallet_keys`."""
    paths = sorted({str(path) for path in proposed.paths.values()})
    buttons = "X to cancel" if comparison.duplicate else "OK to approve, X to cancel."
    lines = (
        comparison.remark,
        "Wallet Name:",
        f"  {proposed.name}",
        f"Policy: {proposed.policy}",
        _who_signs(proposed.threshold, len(proposed.cosigners)),
        "Addresses:",
        "  P2WSH",
        "Derivation:",
        f"  {paths[0] if len(paths) == 1 else f'Varies ({len(paths)})'}",
        f"Press (1) to see extended public keys, {buttons}",
    )
    return Prompt(kind, lines, NO, YES)


def _who_signs(threshold: int, count: int) -> str:
    if threshold == count == 1:
        return "The one signer must approve spends."
    if threshold == count:
        return f"All {count} co-signers must approve spends."
    if threshold == 1:
        return f"Any signature from {count} co-signers will approve spends."
    return f"{threshold} signatures, from {count} possible co-signers, will be required to approve spends."


def wallet_keys(proposed: ColdcardWallet) -> Prompt:
    """What key 1 shows of a wallet that is to be enrolled."""
    lines = [proposed.name]
    for number, key in enumerate(proposed.cosigners):
        if number:
            lines.append("---===---")
        lines += [f"{shown_fingerprint(key.origin.fingerprint)}:", f"  {key.origin.path}", str(key.xpub)]
    return Prompt(WALLET_KEYS, tuple(lines), NO, YES)


def key_address(address: str, path: str) -> Prompt:
    return _address(address, f"= {path}")


def wallet_address(address: str, wallet: ColdcardWallet, origins: tuple[str, ...]) -> Prompt:
    """`origins`: how the screen names the script's keys, in their order."""
    return _address(address, "Wallet:", f"  {wallet.name}", f"  {wallet.policy}", "Paths:", *origins)


def _address(address: str, *details: str) -> Prompt:
    compare = (
        "Compare this payment address to the one shown on your other, less-trusted, software."
        " Press (4) to view QR Code."
    )
    return Prompt(SHOW_ADDRESS, ("Address:", address, *details, compare), NO, YES)


def signed(*, is_message: bool) -> Prompt:
    """What stays on the screen until key X is pressed."""
    what = "Signed BIP-322 PSBT" if is_message else "Partly Signed PSBT"
    lines = ("PSBT Signed", f"{what} shared via USB.", f"Press (1) to save {what} to SD Card.")
    return Prompt(SIGNED, lines, NO, YES)


def failure(title: str, why: str) -> Prompt:
    """Why the device does not sign; it stays until a key is pressed; the host does not wait for that."""
    return Prompt(FAILURE, (title, why), NO, YES)


PRINTABLE: Final = range(0x20, 0x7F)


def transaction(review: ColdcardReview, chain: ColdcardChain) -> Prompt:
    """It names no wallet."""
    if review.message is not None:
        return _proof(review, review.message, chain)
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
    lines.append(f"Network fee {chain.amount(review.fee)}")
    lines += [f" {_count(len(review.psbt.inputs), 'input')}", f" {_count(len(outputs), 'output')}"]
    lines += [line for output in payments for line in _payment(output, chain)]
    if change:
        lines += _change(change, chain)
    if review.notes:
        lines += ["TX LOCKTIMES", *(f"- {note}" for note in review.notes)]
    if review.warnings:
        lines += ["---WARNING---", *(f"- {warning}" for warning in review.warnings)]
    lines.append("Press OK to approve and sign transaction. Press (2) to explore transaction. X to abort.")
    return Prompt(SIGN_TRANSACTION, tuple(lines), NO, YES)


def _proof(review: ColdcardReview, message: str, chain: ColdcardChain) -> Prompt:
    """`shared/auth.py`, ApproveTransaction, for one input and for several."""
    inputs = review.psbt.inputs
    is_of_funds = len(inputs) > 1
    lines = ["OK TO SIGN?", "Proof of Reserves" if is_of_funds else "BIP-322 Message", "Message:", message]
    if is_of_funds:
        lines.append(f"Amount {chain.amount(review.fee)}")
    lines += ["Challenge Address:", str(chain.address(review.challenge))]
    if is_of_funds:
        lines += [f" {_count(len(inputs), 'input')}", " 1 output"]
    if review.warnings:
        lines += ["---WARNING---", *(f"- {warning}" for warning in review.warnings)]
    noun = "proof of reserves" if is_of_funds else "message"
    lines.append(f"Press OK to approve and sign {noun}. Press (2) to explore transaction. X to abort.")
    return Prompt(SIGN_TRANSACTION, tuple(lines), NO, YES)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sum(outputs: Iterable[PsbtOutput]) -> Sats:
    return Sats(sum(output.amount for output in outputs))


def _payment(output: PsbtOutput, chain: ColdcardChain) -> list[str]:
    amount = chain.amount(output.amount)
    address = chain.address(output.script_pubkey)
    if address is not None:
        return [amount, " - to address -", address]
    data = parse_op_return(output.script_pubkey)
    if data is None:
        return [amount, " - to script -", output.script_pubkey.hex()]
    text = f" (ascii: {data.decode('ascii')})" if all(byte in PRINTABLE for byte in data) else ""
    return [amount, " - OP_RETURN -", data.hex() + text]


def _change(outputs: list[PsbtOutput], chain: ColdcardChain) -> list[str]:
    lines = ["Change back:", chain.amount(_sum(outputs))]
    lines.append(" - to address -" if len(outputs) == 1 else " - to addresses -")
    return lines + [str(chain.address(output.script_pubkey)) for output in outputs]
