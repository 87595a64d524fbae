"""A Ledger's status words: what each says, in words for a person who reads the detail of a failure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from firmware_bridge.errors import WrongApp
from firmware_bridge.families import outcome
from firmware_bridge.hwi_client.base import describe
from firmware_bridge.model import Family
from firmware_bridge.port import DeviceFailure

OK: Final = 0x9000
INTERRUPTED: Final = 0xE000
SECURITY_NOT_SATISFIED: Final = 0x6982
DENIED: Final = 0x6985
INCORRECT_DATA: Final = 0x6A80
NOT_SUPPORTED: Final = 0x6A82
UNKNOWN_POLICY: Final = 0xB008

QUESTION_OPEN: Final = "it still shows the question of an earlier request; answer no there"

# The Bitcoin app's `sw.h`, and what the device's own software answers in its place.
_WORDS: Final[Mapping[int, str]] = {
    0x5515: "it is locked",
    0x6511: "it is locked, or no app is open",
    0x6700: "a command of the wrong length",
    0x6804: "it is locked",
    0x6901: QUESTION_OPEN,
    SECURITY_NOT_SATISFIED: "it is locked",
    DENIED: "refused on the device",
    INCORRECT_DATA: "it does not accept what it was given",
    NOT_SUPPORTED: "the app does not support this",
    0x6A86: "the app does not know these parameters",
    0x6A87: "a command of the wrong length",
    0x6D00: "the app does not know this command",
    0x6E00: "the app does not know this kind of command",
    0x6E01: "the app does not know this kind of command",
    0x6F00: "a technical problem",
    0x6FAA: "it is asleep",
    0xB000: "the app's answer was too long",
    0xB007: "the app was in another state than expected",
    UNKNOWN_POLICY: "the vault's registration is not of this device, or of another name or order of keys",
}


def ledger_failure(error: BaseException) -> DeviceFailure:
    """The outcome, decided by the status word where there is one: the exceptions' classes differ from client to client."""
    fault = describe(error)
    words = _WORDS.get(fault.status or OK)
    if words is not None:
        fault = replace(fault, text=f"{words} (0x{fault.status:04X})")
    code, detail = outcome(Family.LEDGER, fault)
    # The detail of this outcome is the other app's name, and a status word tells none.
    return DeviceFailure(code, None if code == WrongApp.code and fault.status is not None else detail)


def status_of(error: BaseException) -> int | None:
    return describe(error).status
