"""What the device shows: each prompt's lines, from values that the device itself derived or verified."""

from firmware_bridge.virtual.panel import Prompt
from multisig import DerivationPath, FeeRate, Sats, format_btc

LOCKTIME_THRESHOLD = 500_000_000
"""Below it a lock time is a block height, from it on a time (Bitcoin Core, script/script.h)."""


def address(text: str, path: tuple[int, ...], quorum: str | None) -> Prompt:
    lines = ("Address", text, _path(path)) if quorum is None else ("Address", text, quorum, _path(path))
    return Prompt("address", lines)


def public_key(xpub: str, path: tuple[int, ...]) -> Prompt:
    return Prompt("public-key", ("Public key", xpub, _path(path)))


def message(text: bytes, address_text: str) -> Prompt:
    return Prompt("sign-message", ("Sign message?", *_readable(text), f"with {address_text}"))


def unusual_path(path: tuple[int, ...]) -> Prompt:
    return Prompt(
        "unknown-path",
        ("Unusual path for this kind of signature.", _path(path), "Continue at your own risk?"),
    )


def payment(amount: Sats, address_text: str) -> Prompt:
    return Prompt("sign-output", (f"Send {format_btc(amount)} BTC", f"to {address_text}?"))


def op_return(data: bytes) -> Prompt:
    return Prompt("sign-op-return", ("Confirm OP_RETURN", *_readable(data)))


def change_count(count: int) -> Prompt:
    return Prompt("sign-change-count", (f"There are {count} change outputs.", "Continue?"))


def high_fee(fee: Sats, rate: FeeRate) -> Prompt:
    return Prompt("sign-fee", ("The fee is unexpectedly high.", _fee(fee, rate), "Send anyway?"))


def lock_time(value: int) -> Prompt:
    unit = "block" if value < LOCKTIME_THRESHOLD else "time"
    return Prompt(
        "sign-lock-time", ("Lock time of this transaction is set to", f"{unit} {value}.", "Continue?")
    )


def total(spent: Sats, fee: Sats, rate: FeeRate) -> Prompt:
    return Prompt("sign-total", (f"Really send {format_btc(spent)} BTC?", "of which fee", _fee(fee, rate)))


def ping(text: str) -> Prompt:
    return Prompt("ping", ("Answer to ping?", *_readable(text.encode())))


def pin_matrix(matrix: str) -> Prompt:
    """Nine digits in a square, as a number pad shows them: the host is told places, never digits."""
    return Prompt("pin", ("Enter your PIN", matrix[6:], matrix[3:6], matrix[:3]))


def enter_pin() -> Prompt:
    """Where the device has a touchscreen. Yes: the person has entered the right one."""
    return Prompt("enter-pin", ("Enter your PIN",))


def enter_passphrase() -> Prompt:
    """Where the device has a touchscreen. Yes: the person has entered it."""
    return Prompt("enter-passphrase", ("Enter your passphrase",))


def _path(path: tuple[int, ...]) -> str:
    return str(DerivationPath(path))


def _fee(fee: Sats, rate: FeeRate) -> str:
    return f"{format_btc(fee)} BTC ({rate})"


def _readable(data: bytes) -> tuple[str, ...]:
    """Text where every character can be seen, else hexadecimal that says so: nothing may hide from the person."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    return (text,) if text and text.isprintable() else ("in hexadecimal:", data.hex())
