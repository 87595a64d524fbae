"""Signing devices for programs: which are connected, in which state, and what a person approves on them.

    async with Bridge(network=Network.SIGNET) as bridge:
        for device in await bridge.refresh():
            ...
        key = await bridge.xpub(device.id, multisig_account_path(Network.SIGNET))
        signed = await bridge.sign(device.id, psbt, vault)

Every failure is a leaf of `BridgeError`. Nothing is printed, every call has a deadline, and HWI runs in
worker processes.
"""

from firmware_bridge.advisories import Advisory as Advisory
from firmware_bridge.advisories import has_anti_exfil as has_anti_exfil
from firmware_bridge.advisories import known_flaws as known_flaws
from firmware_bridge.bridge import Bridge as Bridge
from firmware_bridge.conversation import Ask as Ask
from firmware_bridge.conversation import OnProgress as OnProgress
from firmware_bridge.enrolment import Registration as Registration
from firmware_bridge.enrolment import RegistrationFile as RegistrationFile
from firmware_bridge.enrolment import Registrations as Registrations
from firmware_bridge.enrolment import RegistrationsInMemory as RegistrationsInMemory
from firmware_bridge.enrolment import UnreadableRegistrations as UnreadableRegistrations
from firmware_bridge.errors import AddressMismatch as AddressMismatch
from firmware_bridge.errors import BadDeviceSignature as BadDeviceSignature
from firmware_bridge.errors import BridgeError as BridgeError
from firmware_bridge.errors import Busy as Busy
from firmware_bridge.errors import Cancelled as Cancelled
from firmware_bridge.errors import DeviceFault as DeviceFault
from firmware_bridge.errors import Disconnected as Disconnected
from firmware_bridge.errors import Locked as Locked
from firmware_bridge.errors import NeedsPassphrase as NeedsPassphrase
from firmware_bridge.errors import NoPermission as NoPermission
from firmware_bridge.errors import NotEnrolled as NotEnrolled
from firmware_bridge.errors import RefusedByPerson as RefusedByPerson
from firmware_bridge.errors import TimedOut as TimedOut
from firmware_bridge.errors import Uninitialised as Uninitialised
from firmware_bridge.errors import Unsupported as Unsupported
from firmware_bridge.errors import WorkerCrashed as WorkerCrashed
from firmware_bridge.errors import WrongApp as WrongApp
from firmware_bridge.errors import WrongDevice as WrongDevice
from firmware_bridge.makers import DataScreen as DataScreen
from firmware_bridge.makers import data_screen as data_screen
from firmware_bridge.model import Deadlines as Deadlines
from firmware_bridge.model import Device as Device
from firmware_bridge.model import DeviceEvent as DeviceEvent
from firmware_bridge.model import DeviceState as DeviceState
from firmware_bridge.model import Endpoint as Endpoint
from firmware_bridge.model import Family as Family
from firmware_bridge.model import Progress as Progress
from firmware_bridge.protocol import Question as Question
