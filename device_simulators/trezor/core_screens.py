"""What a model with a touchscreen shows: words and order of core/v2.3.6 (core/src/apps). Newer models are
shown like that, too.

The first line is the screen's header. Pages that the person swipes through are one prompt. A button without
words is an icon.
"""

from collections.abc import Iterator
from typing import Final

from device_simulators.panel import Prompt
from device_simulators.trezor import screens
from device_simulators.trezor.messages import ButtonCode
from device_simulators.trezor.models import DataScreen
from device_simulators.trezor.screens import (
    LOCKTIME_THRESHOLD,
    ButtonPrompt,
    Key,
    is_ascii,
    is_omni,
    omni_words,
    shown_data,
    ticker,
)
from multisig import DerivationPath, Network, Sats

_NO: Final = "✕"
_YES: Final = "✓"
_LOCK: Final = "🔒"
_PIN_TRIES: Final = 16


def amount(value: int, network: Network) -> str:
    """As format_amount of core/v2.3.6, without groups."""
    return screens.amount(value, network).replace(",", "")


def address_pages(
    text: str, path: tuple[int, ...], threshold: int, keys: tuple[Key, ...]
) -> Iterator[ButtonPrompt]:
    """apps/bitcoin/get_address.py. `keys` are the cosigners', none where the address is the own key's; the
    code holds the address in capitals.
    """
    header = f"Multisig {threshold} of {len(keys)}" if keys else _path(path)
    yield _address_page("address", (header, text), "QR")
    yield _address_page("address-qr", (header, text.upper()), "XPUBs" if keys else "Address")
    for number, key in enumerate(keys, 1):
        whose = "yours" if key.own else "others"
        turn = "Next" if number < len(keys) else "Address"
        lines = (f"XPUB #{number} ({whose})", key.xpub)
        yield ButtonCode.PUBLIC_KEY, Prompt("address-xpub", lines, no="", yes=_YES, turn=turn)


def message(text: str, network: Network) -> ButtonPrompt:
    """apps/common/signverify.py: neither the address that signs nor a word about the path."""
    lines = (f"Sign {ticker(network)} message", *map(_glyphs, text.split("\n")))
    return ButtonCode.OTHER, _question("sign-message", lines)


def payment(value: Sats, address_text: str, network: Network) -> ButtonPrompt:
    lines = ("Confirm sending", f"{amount(value, network)} to", address_text)
    return ButtonCode.CONFIRM_OUTPUT, _question("sign-output", lines)


def op_return(data: bytes, screen: DataScreen) -> ButtonPrompt:
    lines = (
        ("OMNI transaction", omni_words(data)) if is_omni(data) else ("OP_RETURN", shown_data(data, screen))
    )
    return ButtonCode.CONFIRM_OUTPUT, _question("sign-op-return", lines)


def high_fee(fee: Sats, network: Network) -> ButtonPrompt:
    lines = ("High fee", "The fee of", amount(fee, network), "is unexpectedly high.", "Continue?")
    return ButtonCode.FEE_OVER_THRESHOLD, _question("sign-fee", lines)


def change_count(count: int) -> ButtonPrompt:
    lines = ("Warning", f"There are {count}", "change-outputs.", "Continue?")
    return ButtonCode.SIGN_TX, _question("sign-change-count", lines)


def lock_time(value: int, *, disabled: bool) -> ButtonPrompt:
    lines: tuple[str, ...] = ("Warning", "Locktime is set but will", "have no effect.")
    if not disabled:
        unit = "blockheight:" if value < LOCKTIME_THRESHOLD else "timestamp:"
        lines = ("Confirm locktime", "Locktime for this", "transaction is set to", unit, str(value))
    return ButtonCode.SIGN_TX, _question("sign-lock-time", (*lines, "Continue?"))


def total(spent: Sats, fee: Sats, network: Network) -> ButtonPrompt:
    lines = (
        "Confirm transaction",
        "Total amount:",
        amount(spent, network),
        "including fee:",
        amount(fee, network),
    )
    return ButtonCode.SIGN_TX, _question("sign-total", lines, yes="Hold to confirm")


def ping() -> Prompt:
    return _question("ping", ("Confirm",))


def passphrase_entry() -> Prompt:
    """While the host is asked for a passphrase."""
    lines = ("Passphrase entry", "Please type your", "passphrase on the", "connected host.")
    return Prompt("passphrase-entry", lines)


def hidden_wallet() -> Prompt:
    lines = ("Hidden wallet", "Access hidden wallet?", "Next screen will show", "the passphrase!")
    return _question("hidden-wallet", lines)


def passphrase(text: str) -> Prompt:
    return _question("passphrase", ("Hidden wallet", "Use this passphrase?", _glyphs(text)))


def enter_pin() -> Prompt:
    """Yes: the person has entered the right one; after a wrong one it asks again, with one attempt less. No:
    they gave up.
    """
    return Prompt("enter-pin", ("Enter your PIN", f"{_PIN_TRIES} attempts remaining"), no=_LOCK, yes=_YES)


def enter_passphrase() -> Prompt:
    """Yes: the person has entered it."""
    return _question("enter-passphrase", ("Enter passphrase",))


def _glyphs(text: str) -> str:
    """convert_char of embed/extmod/modtrezorui/display.c: for what is not ASCII, a "?" in inverse colours."""
    return "".join(letter if is_ascii(letter.encode()) else "?" for letter in text)


def _path(path: tuple[int, ...]) -> str:
    return str(DerivationPath(path)).replace("h", "'")


def _address_page(kind: str, lines: tuple[str, ...], turn: str) -> ButtonPrompt:
    return ButtonCode.ADDRESS, Prompt(kind, lines, no="", yes=_YES, turn=turn)


def _question(kind: str, lines: tuple[str, ...], yes: str = _YES) -> Prompt:
    return Prompt(kind, lines, no=_NO, yes=yes)
