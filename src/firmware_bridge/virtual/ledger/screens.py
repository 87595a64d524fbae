"""What the device shows: each prompt's lines, from values that the device itself derived or verified."""

from firmware_bridge.virtual.panel import Prompt
from multisig import DerivationPath, Sats, format_btc

_LINE_FEED = 0x0A
_PRINTABLE = range(0x20, 0x7F)
MAX_SHOWN_MESSAGE_BYTES = 640
"""The app's limit; of a longer message its hash is shown."""


def public_key(path: DerivationPath, xpub: str, *, usual: bool) -> Prompt:
    warning = () if usual else ("This path is unusual.",)
    return Prompt("public-key", (*warning, f"Path {path}", xpub))


def address(text: str, wallet_name: str) -> Prompt:
    named = (f"Account name: {wallet_name}",) if wallet_name else ()
    return Prompt("address", ("Verify address", *named, text))


def enrol_name(name: str) -> Prompt:
    return Prompt("enrol-name", ("Register account?", f"Account name: {name}"))


def enrol_policy(template: str) -> Prompt:
    return Prompt("enrol-policy", ("Descriptor template", template))


def enrol_key(number: int, count: int, text: str, *, own: bool) -> Prompt:
    return Prompt("enrol-key", (f"Key {number} of {count}, {'ours' if own else 'theirs'}", text))


def unusual_sighash() -> Prompt:
    return _risk("sign-sighash", "This transaction uses non-standard signing rules.")


def external_inputs() -> Prompt:
    return _risk("sign-external-inputs", "There are external inputs. You could spend more than expected.")


def unverified_inputs() -> Prompt:
    return _risk("sign-unverified-inputs", "Unverified inputs. Update your wallet software.")


def high_fee(fee: Sats) -> Prompt:
    return _risk("sign-fee", f"Fees of {format_btc(fee)} BTC are above 10% of the amount.")


def _risk(kind: str, what: str) -> Prompt:
    return Prompt(kind, ("Security risk", what, "Continue anyway?"))


def payment(number: int, count: int, amount: Sats, address_text: str) -> Prompt:
    lines = (f"Output {number} of {count}", f"Send {format_btc(amount)} BTC", f"to {address_text}")
    return Prompt("sign-output", lines)


def op_return(number: int, count: int, amount: Sats, data: str) -> Prompt:
    burned = (f"Send {format_btc(amount)} BTC to nobody",) if amount else ()
    return Prompt("sign-op-return", (f"Output {number} of {count}", *burned, data))


def total(wallet_name: str, spent: Sats, fee: Sats, *, self_transfer: bool) -> Prompt:
    named = (f"From {wallet_name}",) if wallet_name else ()
    what = "Self-transfer" if self_transfer else f"Spend {format_btc(spent)} BTC"
    return Prompt("sign-total", ("Sign transaction?", *named, what, f"Fees {format_btc(fee)} BTC"))


def message(path: DerivationPath, text: bytes, digest: bytes) -> Prompt:
    """The text where every character can be seen and there is room for it, else its SHA-256: nothing may hide."""
    if len(text) <= MAX_SHOWN_MESSAGE_BYTES and all(b in _PRINTABLE or b == _LINE_FEED for b in text):
        shown = tuple(text.decode("ascii").split("\n"))
    else:
        shown = ("Message hash", digest.hex().upper())
    return Prompt("sign-message", ("Sign message?", f"Path {path}", *shown))
