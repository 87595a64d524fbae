"""Which outcome a failure means: by a maker's status or phrase, else by the exception or HWI's code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firmware_bridge import errors
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Family

# A device's words go to screens and logs: bounded, without control characters (L8).
MAX_DETAIL: Final = 300


@dataclass(frozen=True)
class ReportedFault:
    """What an exception of HWI, a maker's library or the system says, as plain values.

    `kinds`: names of the exception's class and its bases, nearest first, a cause before the exception that
    wraps it. `status`: the maker's own code (Trezor's failure type, Ledger's status word). `hwi_code`: HWI's
    negative code.
    """

    kinds: tuple[str, ...]
    text: str
    status: int | None = None
    hwi_code: int | None = None


# HWI's own codes (hwilib.errors) that name an outcome.
_HWI_CODES: Final[Mapping[int, type[errors.BridgeError]]] = {
    -3: errors.Disconnected,
    -6: errors.NeedsPassphrase,
    -8: errors.Unsupported,
    -9: errors.Unsupported,
    -12: errors.Locked,
    -14: errors.RefusedByPerson,
    -15: errors.Busy,
    -18: errors.Uninitialised,
}

# Exceptions that HWI passes on, by name: trezorlib's, ckcc's, libusb's, the system's.
_KINDS: Final[Mapping[str, type[errors.BridgeError]]] = {
    "CCUserRefused": errors.RefusedByPerson,
    "CCBusyError": errors.Busy,
    "FirmwareVersionOutdatedException": errors.Unsupported,
    "LibraryVersionOutdatedException": errors.Unsupported,
    "UnsupportedException": errors.Unsupported,
    "DuplicateEntryException": errors.Unsupported,
    "DeviceIsBusy": errors.Busy,
    "TransportException": errors.Disconnected,
    "USBErrorNoDevice": errors.Disconnected,
    "USBErrorNotFound": errors.Disconnected,
    "USBErrorIO": errors.Disconnected,
    "USBErrorPipe": errors.Disconnected,
    "USBErrorAccess": errors.NoPermission,
    "USBErrorBusy": errors.Busy,
    "USBErrorTimeout": errors.TimedOut,
    "PermissionError": errors.NoPermission,
    "TimeoutError": errors.TimedOut,
    "ConnectionError": errors.Disconnected,
    "FileNotFoundError": errors.Disconnected,
    "OSError": errors.Disconnected,
    "NotImplementedError": errors.Unsupported,
}


def outcome(family: Family, fault: ReportedFault) -> tuple[type[errors.BridgeError], str]:
    """The outcome, and the device's own words. An unknown failure is a device fault."""
    maker = MAKERS[family]
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
    return errors.DeviceFault, detail


def clean_detail(text: str) -> str:
    """A device's words, fit for a screen: one line, printable, bounded."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * MAX_DETAIL]).split())
    return words if len(words) <= MAX_DETAIL else words[: MAX_DETAIL - 1] + "…"
