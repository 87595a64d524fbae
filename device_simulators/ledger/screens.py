"""What the device shows: each question's pages, in order, from values that the device itself derived or
verified.

The texts are those of the Bitcoin app 2.4.6 on a Nano S Plus (src/ui/display_nbgl.c, src/ui/display_utils.c,
and the pictures of tests/snapshots/nanosp). A question has all its pages on one `Prompt`: a person pages
through them, and says yes or no on the last.
"""

from collections.abc import Iterable

from device_simulators.panel import Prompt
from multisig import DerivationPath, Sats

_LINE_FEED = 0x0A
_PRINTABLE = range(0x20, 0x7F)
MAX_SHOWN_MESSAGE_BYTES = 640
"""The app's limit; of a longer message its hash is shown."""
MAX_LISTED_PAYMENTS = 16
"""MAX_EXT_OUTPUT_SIMPLIFIED_NUMBER: of more, each is fetched again when its pages are shown, with the word
for its address changed.
"""

_SATS = 100_000_000
_MASTER = "(Master key)"


def amount(value: Sats, ticker: str) -> str:
    """As format_sats_amount writes it: no trailing zeros, and no point before nothing."""
    whole, part = divmod(value, _SATS)
    digits = f"{part:08d}".rstrip("0")
    return f"{whole}.{digits} {ticker}" if digits else f"{whole} {ticker}"


def _path(path: DerivationPath) -> str:
    """As bip32_path_format writes it: without the master, hardened steps with an apostrophe."""
    return str(path).removeprefix("m").removeprefix("/").replace("h", "'") or _MASTER


def public_key(path: DerivationPath, xpub: str) -> Prompt:
    pages = ("Confirm public key", f"Path {_path(path)}", f"Public key {xpub}")
    return Prompt("public-key", pages, "Reject", "Approve public key")


def address(text: str, wallet_name: str) -> Prompt:
    named = (f"Account name {wallet_name}",) if wallet_name else ()
    return Prompt("address", ("Verify bitcoin address", f"Address {text}", *named), "Cancel", "Confirm")


def enrolment(name: str, template: str, keys: Iterable[tuple[str, bool]]) -> Prompt:
    """`keys`: each with whether it is this device's."""
    pages = (
        "Review account to register",
        f"Account name {name}",
        f"Wallet policy {template}",
        "Review co-signer public keys",
        *(f"{'Our' if own else 'Their'} key@{at} {key}" for at, (key, own) in enumerate(keys)),
    )
    return Prompt("enrol", pages, "Reject operation", "Register account")


def unverified_inputs() -> Prompt:
    return _risk("sign-unverified-inputs", "Unverified inputs Update your wallet software")


def _risk(kind: str, what: str) -> Prompt:
    return Prompt(kind, (f"Security risk {what}",), "Back to safety", "Continue anyway")


def transaction(
    wallet_name: str, payments: list[tuple[Sats, str]], fee: Sats, ticker: str, *, high_fee: bool
) -> Prompt:
    """`payments`: amounts and addresses, or what stands in an address's place."""
    pages = (
        "Review transaction to send bitcoin",
        *((f"From {wallet_name}",) if wallet_name else ()),
        *_payments(payments, ticker),
        *(("High fees warning Fees are above 10% of total amount",) if high_fee else ()),
        f"Fees {amount(fee, ticker)}",
    )
    return Prompt("sign-transaction", pages, "Reject transaction", "Sign transaction")


def _payments(payments: list[tuple[Sats, str]], ticker: str) -> Iterable[str]:
    if not payments:
        yield f"Amount 0 {ticker} (self-transfer)"
    to = "To" if len(payments) <= MAX_LISTED_PAYMENTS else "Address"
    for number, (value, text) in enumerate(payments, 1):
        if len(payments) > 1:
            yield f"Transaction output {number} of {len(payments)}"
        yield f"Amount {amount(value, ticker)}"
        yield f"{to} {text}"


def message(path: DerivationPath, text: bytes, digest: bytes) -> Prompt:
    """The text where every character can be seen and there is room for it, else its SHA-256: nothing may
    hide.
    """
    if len(text) <= MAX_SHOWN_MESSAGE_BYTES and all(b in _PRINTABLE or b == _LINE_FEED for b in text):
        shown = f"Message {text.decode('ascii')}"
    else:
        shown = f"Message hash {digest.hex().upper()}"
    return Prompt(
        "sign-message", ("Review message", f"Path {_path(path)}", shown), "Reject message", "Sign message"
    )
