"""What a Trezor One shows: each prompt's lines, from values that the device itself derived or verified.

Words, order and limits are those of Trezor One 1.14.1 (legacy/firmware/layout2.c, fsm.c, fsm_msg_coin.h). A
value that the firmware breaks into rows is one line here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from device_simulators.panel import Prompt
from device_simulators.trezor.messages import ButtonCode
from device_simulators.trezor.wallet import is_single_path
from multisig import HARDENED, DerivationPath, FeeRate, Network, Sats
from multisig.units import SATS_PER_BTC

LOCKTIME_THRESHOLD = 500_000_000
"""Below it a lock time is a block height, from it on a time (Bitcoin Core, script/script.h)."""

_CONFIRM: Final = "Confirm"
_TICKERS: Final = {True: "BTC", False: "TEST"}
_HEX_SHOWN: Final = 32
"""Bytes that fit on the One's screen; where there are more, the last one gives way to ".."."""
_PAGE_TEXT: Final = 4 * 18
_PAGE_BYTES: Final = 32
_XPUB_PAGE: Final = 81
_LINE_PIXELS: Final = 108
"""What is right of the icon. Of what does not fit the rest is not shown (`oledDrawString`)."""
_PIXELS: Final = {"1": 3, ",": 2, ".": 2, " ": 1, "T": 6, "S": 4, "t": 3}
"""The width of a character where it is not five, without the gap of one (legacy/gen/font.inc)."""


ButtonPrompt = tuple[ButtonCode, Prompt]
"""A question, and what the host is told of it."""


@dataclass(frozen=True)
class CosignerKey:
    """A cosigner's key as the address screen pages through them."""

    xpub: str
    own: bool


def ticker(network: Network) -> str:
    return _TICKERS[network is Network.MAINNET]


def amount(value: int, network: Network) -> str:
    """As bn_format_amount: no zeros at the end, thousands in groups."""
    whole, dot, part = _decimal(value).partition(".")
    return f"{int(whole):,}{dot}{part} {ticker(network)}"


def _cut(line: str) -> str:
    """As much as fits beside the icon."""
    ends = accumulate(_PIXELS.get(letter, 5) + 1 for letter in line)
    return "".join(letter for letter, end in zip(line, ends, strict=True) if end <= _LINE_PIXELS + 1)


def path_label(path: tuple[int, ...], network: Network) -> str:
    """address_n_str: an account that its path names by itself, else the path."""
    if is_single_path(path, network) and path[2] - HARDENED + 1 < 100:
        return f"{ticker(network)} SegWit account #{path[2] - HARDENED + 1}"
    return "Path: " + str(DerivationPath(path)).replace("h", "'")


def address(text: str, path: tuple[int, ...], quorum: str | None, network: Network) -> Prompt:
    lines = (quorum or "Address:", text, path_label(path, network))
    return Prompt("address", lines, no="", yes=_CONFIRM, turn="QR Code")


def address_code() -> Prompt:
    """The left button of the screen before leads here; its own leads on."""
    return Prompt("address-qr", ("QR code of the address",), no="", yes=_CONFIRM, turn=" ")


def address_keys(keys: tuple[CosignerKey, ...]) -> Iterator[Prompt]:
    for number, key in enumerate(keys, 1):
        whose = "yours" if key.own else "cosigner"
        rest = key.xpub[_XPUB_PAGE:]
        for page, part in ((1, key.xpub[:_XPUB_PAGE] + "..."), (2, rest)):
            lines = (f"XPUB #{number:<2} {page}/2 ({whose})", part)
            yield Prompt("address-xpub", lines, no="", yes=_CONFIRM, turn="Next")


def quorum(threshold: int, keys: int, *, ordered: bool) -> str:
    return f"Multisig {threshold:2d} of {keys:2d}{' (sorted)' if ordered else ''}:"


def message_signer(address_text: str) -> Prompt:
    return _question("sign-message-address", ("Confirm address?", "Message signed by:", address_text))


def message(text: bytes) -> Iterator[Prompt]:
    """Page after page, each with a button request of its own; text that is not ASCII in hexadecimal. The
    title is below it.
    """
    shown = _is_ascii(text)
    size, title = (_PAGE_TEXT, "Sign message?") if shown else (_PAGE_BYTES, "Sign binary message?")
    for at in range(0, len(text) or 1, size):
        part = text[at : at + size]
        lines = (part.decode("ascii") if shown else part.hex().upper(), title)
        yield _question("sign-message", lines, yes="Next" if at + size < len(text) else _CONFIRM)


def unusual_path() -> Prompt:
    return Prompt(
        "unknown-path",
        ("Wrong address path", "for selected coin.", "Continue at your", "own risk!"),
        no="Abort",
        yes="Continue",
    )


def payment(value: Sats, address_text: str, network: Network, path: tuple[int, ...] | None) -> Prompt:
    label = () if path is None else (path_label(path, network),)
    return _question(
        "sign-output", ("Confirm sending", _cut(f"{amount(value, network)} to"), address_text, *label)
    )


def op_return(data: bytes) -> Prompt:
    return _question("sign-op-return", ("Confirm OP_RETURN:", _shown_data(data)))


def _shown_data(data: bytes) -> str:
    """As layoutConfirmOpReturn and split_message_hex."""
    if _is_ascii(data):
        return data.decode("ascii")
    digits = data.hex().upper()
    return digits if len(data) <= _HEX_SHOWN else digits[: 2 * _HEX_SHOWN - 2] + ".."


def change_count(count: int) -> Prompt:
    return _question("sign-change-count", ("Warning!", f"There are {count}", "change-outputs.", "Continue?"))


def lock_time(value: int, *, disabled: bool) -> Prompt:
    lines: tuple[str, ...]
    if disabled:
        lines = ("Warning!", "Locktime is set but", "will have no effect.")
    elif value < LOCKTIME_THRESHOLD:
        lines = ("Locktime for this", "transaction is set to", "blockheight:", str(value))
    else:
        when = datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
        lines = ("Locktime for this", "transaction is set to", "timestamp (UTC):", when)
    return _question("sign-lock-time", (*lines, "Continue?"))


def total(spent: Sats, fee: Sats, rate: FeeRate, network: Network) -> Prompt:
    return _question(
        "sign-total",
        (
            "Confirm sending:",
            _cut(amount(spent, network)),
            "including fee:",
            amount(fee, network),
            f"({_rate(rate)} sat/vB)",
        ),
    )


def ping() -> Prompt:
    """What the host says with it is not shown."""
    return _question("ping", ("Do you really want to", "answer to ping?"))


def hidden_wallet() -> Prompt:
    return _question("hidden-wallet", ("Access hidden wallet?", "Next screen will show", "the passphrase!"))


def passphrase(text: str) -> Prompt:
    return _question("passphrase", (_printable(text), "Use this passphrase?"))


def enter_pin() -> Prompt:
    """On a touchscreen. Yes: the person has entered the right one. No: they gave up."""
    return _question("enter-pin", ("Enter your PIN",))


def enter_passphrase() -> Prompt:
    """On a touchscreen. Yes: the person has entered it."""
    return _question("enter-passphrase", ("Enter passphrase",))


def pin_matrix(matrix: str) -> Prompt:
    """Nine digits in a square, as a number pad shows them: the host is told places, never digits."""
    return Prompt("pin", ("Please enter current PIN:", matrix[6:], matrix[3:6], matrix[:3]))


def _question(kind: str, lines: tuple[str, ...], yes: str = _CONFIRM) -> Prompt:
    return Prompt(kind, lines, no="Cancel", yes=yes)


def _is_ascii(data: bytes) -> bool:
    """is_valid_ascii: from space to tilde, nothing that a screen would hide."""
    return all(0x20 <= byte <= 0x7E for byte in data)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _rate(rate: FeeRate) -> str:
    """Two decimal places, a half rounded up (formatComputedFeeRate), and none that is a zero at the end."""
    whole, hundredths = divmod((rate.sat_per_kvb + 5) // 10, 100)
    return f"{whole}.{hundredths:02d}".rstrip("0").rstrip(".")


def _decimal(value: int) -> str:
    whole, fraction = divmod(value, SATS_PER_BTC)
    digits = f"{fraction:08d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
