"""From the daemon's errors to HWI's: each code stands at the class of the error or the outcome. And what HWI
does and signerd refuses: commands, and passphrases that are not typed at signerd itself.
"""

from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from custody.common.text import said
from signerd.errors import DeviceFailed, HwiCode, SignerdError

if TYPE_CHECKING:
    from multisig import MultisigError
    from signerd import shapes


class HwiError(Exception):
    """An error in HWI's form. ``str(error)`` is the sentence. ``code``: most are about an argument."""

    def __init__(self, sentence: str, code: HwiCode = HwiCode.BAD_ARGUMENT) -> None:
        super().__init__(sentence)
        self.code = code


unavailable = partial(HwiError, code=HwiCode.UNAVAILABLE_ACTION)


def device_code(sentence: str) -> HwiCode:
    """The code of a device's failure, which the daemon reports by the library's sentence, without a code."""
    # Imported after a failure only: the library is large.
    from firmware_bridge import BridgeError

    for outcome in BridgeError.__subclasses__():
        if outcome.sentence is not BridgeError.sentence and sentence.startswith(outcome.sentence):
            return HwiCode(outcome.hwi_code)
    return HwiCode.UNKNOWN_ERROR


def code_of(error: SignerdError) -> HwiCode:
    return device_code(str(error)) if isinstance(error, DeviceFailed) else error.hwi


def in_words(error: "SignerdError | MultisigError") -> str:
    """The error and its hint: HWI's form has one sentence for both."""
    return f"{said(error)} {error.hint}".strip()


# Each command, as HWI's sentence names it, and why signerd does not do it.
REFUSED: Mapping[str, tuple[str, str]] = {
    "wipe": ("wiping via software", "no program may make a device erase its seed"),
    "setup": ("software setup", "no program may take part in creating a seed"),
    "restore": ("restoring via software", "the words of a seed are typed only into the device"),
    "backup": ("creating a backup via software", "no program may take part in the backup of a seed"),
    "togglepassphrase": (
        "toggling passphrase from the host",
        "it changes which wallet the device opens, and without knowing that, you find an empty one",
    ),
    "signmessage": (
        "signing messages",
        "a signed text can be a login or a contract, and signerd has no check for either",
    ),
    "installudevrules": (
        "installing udev rules",
        "it needs root, which signerd never has. `signerd udev install` does it",
    ),
}
_OF_SEEDS: Final = frozenset({"wipe", "setup", "restore", "backup", "togglepassphrase"})
_BY_ITS_OWNER: Final = " Do it on the device itself, or with its maker's software."
# How HWI begins a family's sentences, and which commands its driver of the family refuses itself.
FAMILIES: Mapping[str, tuple[str, frozenset[str]]] = {
    "trezor": ("The Trezor does", frozenset({"backup", "registerdescriptor"})),
    "coldcard": ("The Coldcard does", _OF_SEEDS - {"backup"}),
    "ledger": ("The Ledger Nano S and X do", _OF_SEEDS),
    "bitbox02": ("The BitBox02 does", frozenset()),
    "jade": ("Blockstream Jade does", _OF_SEEDS),
}
NO_PASSWORDS: Final = (
    "a passphrase does not belong on a command line or in another program's pipe: signerd asks for it "
    "on its page or with `signerd devices unlock`"
)


def not_done(family: str, what: str) -> HwiError:
    """In HWI's words. ``what``: "need a PIN sent from the host"."""
    return unavailable(f"{FAMILIES[family][0]} not {what}")


def refuse(args: Namespace, device: "shapes.DeviceView | None") -> NoReturn:
    """Raises HwiError: in HWI's words where HWI refuses it too for this device."""
    if args.command == "signmessage":
        from multisig import DerivationPath

        DerivationPath.parse(args.path)
    what, why = REFUSED[args.command]
    if device is not None and args.command in FAMILIES[device.family][1]:
        raise not_done(device.family, f"support {what}")
    instead = _BY_ITS_OWNER if args.command in _OF_SEEDS else ""
    raise unavailable(f"signerd does not support {what}: {why}.{instead}")
