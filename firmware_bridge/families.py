"""What differs by family, as data; mostly which error code, status word or phrase means which outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from firmware_bridge.errors import (
    BridgeError,
    Busy,
    DeviceFault,
    Disconnected,
    Locked,
    NeedsPassphrase,
    NoPermission,
    NotEnrolled,
    RefusedByPerson,
    TimedOut,
    Uninitialised,
    Unsupported,
    WorkerCrashed,
    WrongApp,
    WrongDevice,
)
from firmware_bridge.limits import Limits, Pace, ledger_takes, trezor_takes
from firmware_bridge.model import Family

# A device's words go to screens and logs: bounded, without control characters (L8).
MAX_DETAIL: Final = 300


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
    `max_name`: the longest name of a vault; None if they keep no names. `enrols`: they must know a vault
    before they sign for it. `shares_session`: a device has one session, which a new connection takes away
    from the last one. `keeps_session`: what `unlock` returned stays valid without power. `refuses_address`:
    the person can refuse an address on the device; if not, on the computer.
    `knows_regtest`: they write its addresses in its own form, where the others use testnet's.
    `hints`: what to do after an outcome, if not `BridgeError.hint`. `pace`: how long they work
    on a transaction. `limits`: by the beginning of the model's name, the first that fits.
    """

    name: str
    udev_rules: str
    max_name: int | None = None
    statuses: Mapping[int, type[BridgeError]] = field(default_factory=dict)
    phrases: tuple[tuple[str, type[BridgeError]], ...] = ()
    shares_session: bool = False
    enrols: bool = False
    keeps_session: bool = False
    hints: Mapping[type[BridgeError], str] = field(default_factory=dict)
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
                4: RefusedByPerson,
                5: Locked,
                6: Locked,
                7: Locked,
                11: Uninitialised,
                14: NeedsPassphrase,
                15: Busy,
                17: Unsupported,
                19: Busy,
            },
            phrases=(
                ("cannot sign external inputs", WrongDevice),
                ("unsupported trezor model", Unsupported),
                ("unsupported device", Unsupported),
                ("firmware is out of date", Unsupported),
                ("could not find device by path", Disconnected),
                ("device is busy", Busy),
                ("used by another application", Busy),
                ("open failed", NoPermission),
                # HWI's text about missing udev rules.
                ("cannot open device", NoPermission),
                ("unexpected chunk size", DeviceFault),
                # The request is at fault, not the device.
                ("forbidden key path", Unsupported),
                ("message too long", Unsupported),
            ),
        ),
        Family.COLDCARD: Maker(
            "Coldcard",
            udev_rules="20-coldcard.rules",
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
                ("unknown multisig wallet", NotEnrolled),
                ("do not match any existing wallet", NotEnrolled),
                ("wallet with those fingerprints not found", NotEnrolled),
                ("refused to import", RefusedByPerson),
                # HSM mode, or a spending policy of its owner.
                ("not allowed in hsm mode", Busy),
                ("spending policy", Unsupported),
                ("none of the keys involved", WrongDevice),
                ("framing error", Busy),
                ("cannot connect to simulator", Disconnected),
                ("timeout reading usb", TimedOut),
                # ckcc's own words. A Coldcard speaks USB only after its PIN (start_login_sequence).
                ("doesn't have any secrets", Uninitialised),
                ("device is locked", Locked),
                ("open failed", NoPermission),
                # The request is at fault, not the device. The first: the owner's setting, 10 % unless changed
                # (shared/psbt.py, consider_outputs), said before it asks. The last: ckcc's own check.
                ("network fee bigger than", Unsupported),
                ("msg too short", Unsupported),
                ("msg too long", Unsupported),
                # Too many spaces together, at the beginning, or at the end.
                ("in msg", Unsupported),
                ("must be ascii printable", Unsupported),
                ("msg length:", Unsupported),
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
                0x5515: Locked,
                0x6511: Locked,
                # DEVICE_NOT_ONBOARDED, in both its numbers (StatusCodes of the maker's @ledgerhq/errors).
                0x6611: Uninitialised,
                0x6804: Locked,
                0x6901: Busy,
                0x6982: Locked,
                0x6985: RefusedByPerson,
                0x6A82: Unsupported,
                0x6D00: WrongApp,
                0x6D07: Uninitialised,
                0x6E00: WrongApp,
                0x6E01: WrongApp,
                0x6FAA: Locked,
                0xB008: NotEnrolled,
                # No status at all: the connection was closed.
                0x0000: Disconnected,
            },
            phrases=(
                ("not in either the bitcoin", WrongApp),
                ("device is asleep", Locked),
                ("open failed", NoPermission),
            ),
            # Approving an abandoned question signs nothing, but closes the app if its host has gone.
            hints={
                TimedOut: "If it still shows the question, answer no there; "
                "a yes has no effect any more. Then repeat.",
                Busy: "If it shows a question, answer no there. Close other wallet programs. Then repeat.",
                WorkerCrashed: "If it still shows the question, answer no there; "
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
                101: Unsupported,
                103: DeviceFault,
                104: RefusedByPerson,
                106: Unsupported,
                107: Unsupported,
            },
            phrases=(
                ("pairing rejected", RefusedByPerson),
                ("unlock process aborted", RefusedByPerson),
                ("channel busy", Busy),
                ("not one of the cosigners", WrongDevice),
                ("no key found for input", WrongDevice),
                ("output type not recognized", Unsupported),
                ("keypath bip44 purpose", Unsupported),
                ("open failed", NoPermission),
            ),
        ),
        Family.JADE: Maker(
            "Jade",
            udev_rules="20-jade.rules",
            # HWI names it "localtest", which the firmware's network.c has with the prefix "bcrt".
            knows_regtest=True,
            # MULTISIG_NAME_MAX_LEN of the firmware.
            max_name=15,
            enrols=True,
            # JadeError in the maker's jadepy; the other codes are faults of the conversation.
            statuses={
                -32000: RefusedByPerson,
                -32002: Locked,
                -32003: WrongApp,
                -32601: Unsupported,
            },
            phrases=(("permission denied", NoPermission), ("resource busy", Busy)),
        ),
    }
)


def maker_of(family: Family) -> Maker:
    return MAKERS[family]


# HWI's own codes (hwilib.errors) that name an outcome.
_HWI_CODES: Final[Mapping[int, type[BridgeError]]] = {
    -3: Disconnected,
    -6: NeedsPassphrase,
    -8: Unsupported,
    -9: Unsupported,
    -12: Locked,
    -14: RefusedByPerson,
    -15: Busy,
    -18: Uninitialised,
}

# Exceptions that HWI passes on, by name: trezorlib's, ckcc's, libusb's, the system's.
_KINDS: Final[Mapping[str, type[BridgeError]]] = {
    "Cancelled": RefusedByPerson,
    "CCUserRefused": RefusedByPerson,
    "CCBusyError": Busy,
    "PinNeeded": Locked,
    "PinException": Locked,
    "PassphraseNeeded": NeedsPassphrase,
    "OutdatedFirmwareError": Unsupported,
    "FirmwareVersionOutdatedException": Unsupported,
    "LibraryVersionOutdatedException": Unsupported,
    "UnsupportedException": Unsupported,
    "DuplicateEntryException": Unsupported,
    "TransportException": Disconnected,
    "USBErrorNoDevice": Disconnected,
    "USBErrorNotFound": Disconnected,
    "USBErrorIO": Disconnected,
    "USBErrorPipe": Disconnected,
    "USBErrorAccess": NoPermission,
    "USBErrorBusy": Busy,
    "USBErrorTimeout": TimedOut,
    "PermissionError": NoPermission,
    "TimeoutError": TimedOut,
    "ConnectionError": Disconnected,
    "FileNotFoundError": Disconnected,
    "OSError": Disconnected,
    "NotImplementedError": Unsupported,
    "NotAvailable": Unsupported,
}


def outcome(family: Family, fault: Fault) -> tuple[type[BridgeError], str]:
    """The outcome, and the device's own words. An unknown failure is a device fault."""
    maker = maker_of(family)
    detail = clean_detail(fault.text or fault.kinds[0])
    if fault.status is not None and fault.status in maker.statuses:
        return maker.statuses[fault.status], detail
    lowered = fault.text.lower()
    for phrase, meant in maker.phrases:
        if phrase in lowered:
            return meant, detail
    for kind in fault.kinds:
        if kind in _KINDS:
            return _KINDS[kind], detail
    if fault.hwi_code is not None and fault.hwi_code in _HWI_CODES:
        return _HWI_CODES[fault.hwi_code], detail
    return DeviceFault, detail


def clean_detail(text: str) -> str:
    """A device's words, fit for a screen: one line, printable, bounded."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * MAX_DETAIL]).split())
    return words if len(words) <= MAX_DETAIL else words[: MAX_DETAIL - 1] + "…"
