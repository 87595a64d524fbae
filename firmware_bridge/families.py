"""What differs by family, as data; mostly which error code, status word or phrase means which outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from firmware_bridge import errors
from firmware_bridge.limits import Limits, Pace, ledger_takes, trezor_takes
from firmware_bridge.model import Family

# A device's words go to screens and logs: bounded, without control characters (L8).
MAX_DETAIL: Final = 300

_REFUSED: Final = errors.RefusedByPerson.code
_DISCONNECTED: Final = errors.Disconnected.code
_LOCKED: Final = errors.Locked.code
_UNINITIALISED: Final = errors.Uninitialised.code
_WRONG_APP: Final = errors.WrongApp.code
_PASSPHRASE: Final = errors.NeedsPassphrase.code
_TIMED_OUT: Final = errors.TimedOut.code
_BUSY: Final = errors.Busy.code
_PERMISSION: Final = errors.NoPermission.code
_UNSUPPORTED: Final = errors.Unsupported.code
_NOT_ENROLLED: Final = errors.NotEnrolled.code
_WRONG_DEVICE: Final = errors.WrongDevice.code
_FAULT: Final = errors.DeviceFault.code
_CRASHED: Final = errors.WorkerCrashed.code


@dataclass(frozen=True)
class Fault:
    """What an exception of HWI, a maker's library or the system says, as plain values.

    `kinds`: names of the exception's class and its bases, nearest first, a cause before the exception that
    wraps it. `status`: the maker's own code (Trezor's failure type, Ledger's status word). `hwi_code`: HWI's
    negative code.
    """

    kinds: tuple[str, ...]
    text: str
    status: int | None = None
    hwi_code: int | None = None


# Of makers whose devices were not timed.
_USUAL: Final = Pace()


@dataclass(frozen=True)
class Maker:
    """A family: its properties, and which outcome a status, else a phrase (lower case, first match) means.

    `udev_rules`: the file of `signerd.udev` that lets the person at the machine open its devices.
    `cable_only`: its devices read neither cards nor QR codes. `max_name`: the longest name of a vault; None
    if they keep no names. `enrols`: they must know a vault before they sign for it. `shares_session`: a
    device has one session, which a new connection takes away from the last one. `keeps_session`: what
    `unlock` returned stays valid without power. `refuses_address`: the person can refuse an address on the
    device; if not, on the computer.
    `knows_regtest`: they write its addresses in its own form, where the others use testnet's.
    `hints`: what to do after an outcome (by its code), if not `BridgeError.hint`. `pace`: how long they work
    on a transaction. `limits`: by the beginning of the model's name, the first that fits.
    """

    name: str
    udev_rules: str
    cable_only: bool = True
    max_name: int | None = None
    statuses: Mapping[int, str] = field(default_factory=dict)
    phrases: tuple[tuple[str, str], ...] = ()
    shares_session: bool = False
    enrols: bool = False
    keeps_session: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    refuses_address: bool = True
    knows_regtest: bool = False
    pace: Pace = _USUAL
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def limits_of(self, model: str) -> Limits:
        """The limits of this model."""
        fitting = (limits for start, limits in self.limits.items() if model.startswith(start))
        return next(fitting, Limits())


# signing_validate_output of legacy/v1.14.1, and core/src/apps/bitcoin/sign_tx/helpers.py: "OP_RETURN output
# with non-zero amount", after the outputs before it were confirmed.
_TREZOR: Final = Limits(takes=trezor_takes, pays_data=False)


MAKERS: Mapping[Family, Maker] = MappingProxyType(
    {
        Family.TREZOR: Maker(
            "Trezor",
            udev_rules="20-trezor.rules",
            # fsm_layoutAddress of legacy/v1.14.1, show_address of core/v2.3.6: [QR Code, Confirm], and pages.
            refuses_address=False,
            # Of a One, and where the model is not known (legacy/v1.14.1): MAX_INPUTS_COUNT in signing.c
            # ("Too many inputs."); PrevOutput.script_pubkey and PrevInput.script_sig in
            # protob/messages-bitcoin.options ("bytes overflow"), read after the person's approval.
            limits={
                "Trezor Model T": _TREZOR,
                "Trezor Safe": _TREZOR,
                "": replace(_TREZOR, inputs=512, previous_output=520, previous_input=1650),
            },
            # FailureType in the vendor's messages-common.proto; 15 and up are newer than HWI's copy. 17: it
            # speaks THP only.
            statuses={
                4: _REFUSED,
                5: _LOCKED,
                6: _LOCKED,
                7: _LOCKED,
                11: _UNINITIALISED,
                14: _PASSPHRASE,
                15: _BUSY,
                17: _UNSUPPORTED,
                19: _BUSY,
            },
            phrases=(
                ("cannot sign external inputs", _WRONG_DEVICE),
                ("unsupported trezor model", _UNSUPPORTED),
                ("unsupported device", _UNSUPPORTED),
                ("firmware is out of date", _UNSUPPORTED),
                ("could not find device by path", _DISCONNECTED),
                ("device is busy", _BUSY),
                ("used by another application", _BUSY),
                ("open failed", _PERMISSION),
                # HWI's text about missing udev rules.
                ("cannot open device", _PERMISSION),
                ("unexpected chunk size", _FAULT),
                # The request is at fault, not the device.
                ("forbidden key path", _UNSUPPORTED),
                ("message too long", _UNSUPPORTED),
            ),
        ),
        Family.COLDCARD: Maker(
            "Coldcard",
            udev_rules="20-coldcard.rules",
            cable_only=False,
            # MAX_NAME_LEN of the firmware's multisig wallets.
            max_name=20,
            shares_session=True,
            enrols=True,
            # It shows the address until any key is pressed.
            refuses_address=False,
            # In the maker's simulator (5.4.5): 200 s for 1.9 MB, 20 s for 391,827 bytes, 51 s for 250 inputs
            # of a 2-of-3.
            pace=Pace(kilobyte=0.11),
            phrases=(
                ("unknown multisig wallet", _NOT_ENROLLED),
                ("do not match any existing wallet", _NOT_ENROLLED),
                ("wallet with those fingerprints not found", _NOT_ENROLLED),
                ("refused to import", _REFUSED),
                # HSM mode, or a spending policy of its owner.
                ("not allowed in hsm mode", _BUSY),
                ("spending policy", _UNSUPPORTED),
                ("none of the keys involved", _WRONG_DEVICE),
                ("framing error", _BUSY),
                ("cannot connect to simulator", _DISCONNECTED),
                ("timeout reading usb", _TIMED_OUT),
                # ckcc's own words. A Coldcard speaks USB only after its PIN (start_login_sequence).
                ("doesn't have any secrets", _UNINITIALISED),
                ("device is locked", _LOCKED),
                ("open failed", _PERMISSION),
                # The request is at fault, not the device. The first: the owner's setting, 10 % unless changed
                # (shared/psbt.py, consider_outputs), said before it asks. The last: ckcc's own check.
                ("network fee bigger than", _UNSUPPORTED),
                ("msg too short", _UNSUPPORTED),
                ("msg too long", _UNSUPPORTED),
                # Too many spaces together, at the beginning, or at the end.
                ("in msg", _UNSUPPORTED),
                ("must be ascii printable", _UNSUPPORTED),
                ("msg length:", _UNSUPPORTED),
            ),
        ),
        Family.LEDGER: Maker(
            "Ledger",
            udev_rules="20-ledger.rules",
            # MAX_WALLET_NAME_LENGTH of the Bitcoin app.
            max_name=64,
            enrols=True,
            # In an emulator (2.4.6): 3.2 s an input of a 15-of-15, 0.25 s of a 2-of-3. It sorts by deriving
            # every key that is left for each place (process_multi_sortedmulti_node in
            # src/handler/lib/policy.c): the largest quorum's time for a key bounds every other's.
            pace=Pace(key=0.22),
            # MAX_N_INPUTS_CAN_SIGN and MAX_N_OUTPUTS_CAN_SIGN of the Bitcoin app, and preprocess_outputs in
            # src/handler/sign_psbt.c ("Too many change outputs").
            limits={"": Limits(inputs=512, outputs=512, change=10, takes=ledger_takes)},
            statuses={
                0x5515: _LOCKED,
                0x6511: _LOCKED,
                # DEVICE_NOT_ONBOARDED, in both its numbers (StatusCodes of the maker's @ledgerhq/errors).
                0x6611: _UNINITIALISED,
                0x6804: _LOCKED,
                0x6901: _BUSY,
                0x6982: _LOCKED,
                0x6985: _REFUSED,
                0x6A82: _UNSUPPORTED,
                0x6D00: _WRONG_APP,
                0x6D07: _UNINITIALISED,
                0x6E00: _WRONG_APP,
                0x6E01: _WRONG_APP,
                0x6FAA: _LOCKED,
                0xB008: _NOT_ENROLLED,
                # No status at all: the connection was closed.
                0x0000: _DISCONNECTED,
            },
            phrases=(
                ("not in either the bitcoin", _WRONG_APP),
                ("device is asleep", _LOCKED),
                ("open failed", _PERMISSION),
            ),
            # Approving an abandoned question signs nothing, but closes the app if its host has gone.
            hints={
                _TIMED_OUT: "If it still shows the question, answer no there; "
                "a yes has no effect any more. Then repeat.",
                _BUSY: "If it shows a question, answer no there. Close other wallet programs. Then repeat.",
                _CRASHED: "If it still shows the question, answer no there; "
                "a yes would close the Bitcoin app. Then repeat.",
            },
        ),
        Family.BITBOX02: Maker(
            "BitBox02",
            udev_rules="20-bitbox.rules",
            # The limit of HWI's copy of the maker's library. The card of a BitBox is for its backups.
            max_name=30,
            shares_session=True,
            enrols=True,
            # A pairing, which the device remembers too.
            keeps_session=True,
            # The firmware's error codes (hww/api/error.rs). HWI says of 101 and 103 that a path may be wrong.
            statuses={
                101: _UNSUPPORTED,
                103: _FAULT,
                104: _REFUSED,
                106: _UNSUPPORTED,
                107: _UNSUPPORTED,
            },
            phrases=(
                ("pairing rejected", _REFUSED),
                ("unlock process aborted", _REFUSED),
                ("channel busy", _BUSY),
                ("not one of the cosigners", _WRONG_DEVICE),
                ("no key found for input", _WRONG_DEVICE),
                ("output type not recognized", _UNSUPPORTED),
                ("keypath bip44 purpose", _UNSUPPORTED),
                ("open failed", _PERMISSION),
            ),
        ),
        Family.JADE: Maker(
            "Jade",
            udev_rules="20-jade.rules",
            # HWI names it "localtest", which the firmware's network.c has with the prefix "bcrt".
            knows_regtest=True,
            cable_only=False,
            # MULTISIG_NAME_MAX_LEN of the firmware.
            max_name=15,
            enrols=True,
            # JadeError in the maker's jadepy; the other codes are faults of the conversation.
            statuses={
                -32000: _REFUSED,
                -32002: _LOCKED,
                -32003: _WRONG_APP,
                -32601: _UNSUPPORTED,
            },
            phrases=(("permission denied", _PERMISSION), ("resource busy", _BUSY)),
        ),
    }
)


def maker_of(family: Family) -> Maker:
    return MAKERS[family]


# HWI's own codes (hwilib.errors) that name an outcome.
_HWI_CODES: Final[Mapping[int, str]] = {
    -3: _DISCONNECTED,
    -6: _PASSPHRASE,
    -8: _UNSUPPORTED,
    -9: _UNSUPPORTED,
    -12: _LOCKED,
    -14: _REFUSED,
    -15: _BUSY,
    -18: _UNINITIALISED,
}

# Exceptions that HWI passes on, by name: trezorlib's, ckcc's, libusb's, the system's.
_KINDS: Final[Mapping[str, str]] = {
    "Cancelled": _REFUSED,
    "CCUserRefused": _REFUSED,
    "CCBusyError": _BUSY,
    "PinNeeded": _LOCKED,
    "PinException": _LOCKED,
    "PassphraseNeeded": _PASSPHRASE,
    "OutdatedFirmwareError": _UNSUPPORTED,
    "FirmwareVersionOutdatedException": _UNSUPPORTED,
    "LibraryVersionOutdatedException": _UNSUPPORTED,
    "UnsupportedException": _UNSUPPORTED,
    "DuplicateEntryException": _UNSUPPORTED,
    "TransportException": _DISCONNECTED,
    "USBErrorNoDevice": _DISCONNECTED,
    "USBErrorNotFound": _DISCONNECTED,
    "USBErrorIO": _DISCONNECTED,
    "USBErrorPipe": _DISCONNECTED,
    "USBErrorAccess": _PERMISSION,
    "USBErrorBusy": _BUSY,
    "USBErrorTimeout": _TIMED_OUT,
    "PermissionError": _PERMISSION,
    "TimeoutError": _TIMED_OUT,
    "ConnectionError": _DISCONNECTED,
    "FileNotFoundError": _DISCONNECTED,
    "OSError": _DISCONNECTED,
    "NotImplementedError": _UNSUPPORTED,
    "NotAvailable": _UNSUPPORTED,
}


def outcome(family: Family, fault: Fault) -> tuple[str, str]:
    """(code of a leaf of `BridgeError`, the device's own words). An unknown failure is a device fault."""
    maker = maker_of(family)
    detail = clean_detail(fault.text or fault.kinds[0])
    if fault.status is not None and fault.status in maker.statuses:
        return maker.statuses[fault.status], detail
    lowered = fault.text.lower()
    for phrase, code in maker.phrases:
        if phrase in lowered:
            return code, detail
    for kind in fault.kinds:
        if kind in _KINDS:
            return _KINDS[kind], detail
    if fault.hwi_code is not None and fault.hwi_code in _HWI_CODES:
        return _HWI_CODES[fault.hwi_code], detail
    return _FAULT, detail


def clean_detail(text: str) -> str:
    """A device's words, fit for a screen: one line, printable, bounded."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * MAX_DETAIL]).split())
    return words if len(words) <= MAX_DETAIL else words[: MAX_DETAIL - 1] + "…"
