"""What the screen of a Mk4 says: the texts of firmware 5.4.5 and 5.6.1, without blank lines and without the wrapping.

Source: `shared/auth.py` (`ApproveMessageSign`, `ShowAddressBase`, `done_signing`) and `shared/multisig.py`
(`confirm_import`, `show_detail`).
"""

from typing import Final

from device_simulators.coldcard.comparison import Comparison
from device_simulators.coldcard.wallet import Wallet, shown_fingerprint
from device_simulators.panel import Prompt

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


def wallet(kind: str, proposed: Wallet, found: Comparison) -> Prompt:
    """A multisig wallet to put on record. Its keys are shown on key 1 only: see `wallet_keys`."""
    paths = sorted({str(path) for path in proposed.paths.values()})
    buttons = "X to cancel" if found.duplicate else "OK to approve, X to cancel."
    lines = (
        found.remark,
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


def wallet_keys(proposed: Wallet) -> Prompt:
    """What key 1 shows of a wallet that is to be enrolled."""
    lines = [proposed.name]
    for number, key in enumerate(proposed.cosigners):
        if number:
            lines.append("---===---")
        lines += [f"{shown_fingerprint(key.origin.fingerprint)}:", f"  {key.origin.path}", str(key.xpub)]
    return Prompt(WALLET_KEYS, tuple(lines), NO, YES)


def key_address(address: str, path: str) -> Prompt:
    return _address(address, f"= {path}")


def wallet_address(address: str, wallet: Wallet, origins: tuple[str, ...]) -> Prompt:
    """`origins`: how the screen names the script's keys, in their order."""
    return _address(address, "Wallet:", f"  {wallet.name}", f"  {wallet.policy}", "Paths:", *origins)


def _address(address: str, *details: str) -> Prompt:
    compare = (
        "Compare this payment address to the one shown on your other, less-trusted, software."
        " Press (4) to view QR Code."
    )
    return Prompt(SHOW_ADDRESS, ("Address:", address, *details, compare), NO, YES)


def signed() -> Prompt:
    """What stays on the screen until key X is pressed."""
    lines = (
        "PSBT Signed",
        "Partly Signed PSBT shared via USB.",
        "Press (1) to save Partly Signed PSBT to SD Card.",
    )
    return Prompt(SIGNED, lines, NO, YES)


def failure(title: str, why: str) -> Prompt:
    """Why the device does not sign; it stays until a key is pressed, and makes nobody wait."""
    return Prompt(FAILURE, (title, why), NO, YES)
