"""Signing devices for programs: which are connected, in which state, and what a person approves on them.

    async with Bridge(network=Network.SIGNET) as bridge:
        for device in await bridge.refresh():
            ...
        key = await bridge.xpub(device.id, multisig_account_path(Network.SIGNET))
        signed = await bridge.sign(device.id, psbt, vault)

Every failure is a leaf of `BridgeError`. Nothing is printed, every call has a deadline, and HWI runs in
worker processes.
"""

from firmware_bridge.advisories import Advisory, has_anti_exfil, known_flaws
from firmware_bridge.bridge import Bridge
from firmware_bridge.conversation import Ask, OnProgress
from firmware_bridge.enrolment import (
    Registration,
    RegistrationFile,
    Registrations,
    RegistrationsInMemory,
    UnreadableRegistrations,
)
from firmware_bridge.errors import (
    AddressMismatch,
    BadDeviceSignature,
    BridgeError,
    Busy,
    Cancelled,
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
from firmware_bridge.makers import DataScreen, data_screen
from firmware_bridge.model import (
    Deadlines,
    Device,
    DeviceEvent,
    DeviceState,
    Endpoint,
    Family,
    Progress,
)
from firmware_bridge.protocol import Question

__all__ = [
    "AddressMismatch",
    "Advisory",
    "Ask",
    "BadDeviceSignature",
    "Bridge",
    "BridgeError",
    "Busy",
    "Cancelled",
    "DataScreen",
    "Deadlines",
    "Device",
    "DeviceEvent",
    "DeviceFault",
    "DeviceState",
    "Disconnected",
    "Endpoint",
    "Family",
    "Locked",
    "NeedsPassphrase",
    "NoPermission",
    "NotEnrolled",
    "OnProgress",
    "Progress",
    "Question",
    "RefusedByPerson",
    "Registration",
    "RegistrationFile",
    "Registrations",
    "RegistrationsInMemory",
    "TimedOut",
    "Uninitialised",
    "UnreadableRegistrations",
    "Unsupported",
    "WorkerCrashed",
    "WrongApp",
    "WrongDevice",
    "data_screen",
    "has_anti_exfil",
    "known_flaws",
]
