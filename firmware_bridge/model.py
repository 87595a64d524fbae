"""A device as values: its endpoint, its family, its state; and how the state may change."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import Final, Self

from multisig import Fingerprint
from multisig.shown import AsWritten, ByMember


@unique
class Family(StrEnum):
    """A maker whose devices speak one protocol."""

    TREZOR = "trezor"
    COLDCARD = "coldcard"
    LEDGER = "ledger"
    BITBOX02 = "bitbox02"
    JADE = "jade"


@unique
class DeviceState(StrEnum):
    """The state of a device; `Device.detail` says more."""

    ABSENT = "absent"
    PRESENT = "present"
    """Connected, but not probed yet, or the last attempt failed."""
    PROBING = "probing"
    LOCKED = "locked"
    UNINITIALISED = "uninitialised"
    """It has no keys: new, or wiped."""
    WRONG_APP = "wrong-app"
    NEEDS_PASSPHRASE = "needs-passphrase"  # noqa: S105 - a state, no secret
    READY = "ready"
    BUSY = "busy"
    """At work for this program or for another one (`Device.detail` says which)."""
    NO_PERMISSION = "no-permission"
    UNSUPPORTED = "unsupported"


# Neither gone nor being asked: work may begin.
_AT_REST: Final = frozenset(DeviceState) - {DeviceState.ABSENT, DeviceState.PROBING}
_AT_WORK: Final = frozenset({DeviceState.PROBING, DeviceState.BUSY})
# Known without opening the device: HWI cannot drive this model, or the device file may not be opened.
_KNOWN_FROM_OUTSIDE: Final = frozenset({DeviceState.UNSUPPORTED, DeviceState.NO_PERMISSION})


class IllegalDeviceTransition(Exception):
    """A bug: this cannot happen in the device's state. Nothing was changed."""


_KINDS: Final = ("udp", "unix", "tcp", "hid", "webusb", "serial")
_WITH_PORT: Final = frozenset({"udp", "tcp"})
_PORT: Final = re.compile(r".:[0-9]{1,5}\Z", re.ASCII)


@dataclass(frozen=True, repr=False)
class Endpoint(AsWritten):
    """Where a device is reached: `udp:host:port`, `unix:/path`, `tcp:host:port`, `hid:path`,
    `webusb:bus:ports` or `serial:path`.
    """

    family: Family
    address: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `family:address`, such as `trezor:udp:127.0.0.1:21324`.

        :raises ValueError: no such family or kind of address, or no port where one is needed.
        """
        family, _colon, address = text.partition(":")
        kind, colon, place = address.partition(":")
        if not colon:
            raise ValueError(
                f"an endpoint is family:kind:address, such as trezor:udp:127.0.0.1:21324, not {text!r}"
            )
        if family not in set(Family):
            raise ValueError(f"there is no family {family!r} in {text!r}: {', '.join(Family)}")
        if kind not in _KINDS:
            raise ValueError(f"there is no kind of address {kind!r} in {text!r}: {', '.join(_KINDS)}")
        if kind in _WITH_PORT and not _PORT.search(place):
            raise ValueError(f"{text!r} does not end in a port, as trezor:udp:127.0.0.1:21324 does")
        return cls(Family(family), address)

    def __str__(self) -> str:
        return f"{self.family}:{self.address}"

    @property
    def kind(self) -> str:
        """The part before the first colon of the address."""
        return self.address.partition(":")[0]

    @property
    def place(self) -> str:
        """The part after the first colon of the address."""
        return self.address.partition(":")[2]

    @property
    def emulated(self) -> bool:
        """Whether it is a program and not hardware: a maker's emulator or a virtual device of ours. Neither
        proves which.
        """
        return self.kind in {"udp", "unix", "tcp"}

    @property
    def device_id(self) -> str:
        """A stable id of the endpoint, safe in a URL."""
        return f"{self.family}-{hashlib.sha256(str(self).encode()).hexdigest()[:12]}"


@dataclass(frozen=True, repr=False)
class Device(ByMember):
    """What is known about one device. `fingerprint` is None until it is known; `detail` is a sentence about
    the state; `firmware` is the version that the device reports (a Ledger: that of its Bitcoin app).
    """

    id: str
    family: Family
    model: str
    label: str | None
    endpoint: Endpoint
    state: DeviceState
    fingerprint: Fingerprint | None
    emulator: bool
    detail: str | None
    firmware: str | None = None

    @classmethod
    def at(cls, endpoint: Endpoint, model: str) -> Self:
        """An absent device at this endpoint."""
        return cls(
            id=endpoint.device_id,
            family=endpoint.family,
            model=model,
            label=None,
            endpoint=endpoint,
            state=DeviceState.ABSENT,
            fingerprint=None,
            emulator=endpoint.emulated,
            detail=None,
        )

    def called(self, model: str) -> Self:
        """Of this model; of a program its name says so."""
        return replace(self, model=f"{model} (emulator)" if self.emulator else model)

    def appeared(self) -> Self:
        """:raises IllegalDeviceTransition: as the methods below, where this cannot happen in this state."""
        return self._to(DeviceState.PRESENT, None, self.state == DeviceState.ABSENT)

    def left(self) -> Self:
        """An absent device has no label and no fingerprint."""
        gone = self._to(DeviceState.ABSENT, None, self.state != DeviceState.ABSENT)
        return replace(gone, label=None, fingerprint=None, firmware=None)

    def at_work(self, state: DeviceState, detail: str | None = None) -> Self:
        """It is probed or used."""
        return self._to(state, detail, self.state in _AT_REST and state in _AT_WORK)

    def found(self, state: DeviceState, detail: str | None = None) -> Self:
        """The end of that work: `BridgeError.state` of its outcome, or ready. One without keys has no
        fingerprint.
        """
        if state == DeviceState.ABSENT:
            return replace(self.left(), detail=detail)
        outside = self.state == DeviceState.PRESENT and state in _KNOWN_FROM_OUTSIDE
        return self._to(state, detail, (self.state in _AT_WORK and state != DeviceState.PROBING) or outside)

    def _to(self, state: DeviceState, detail: str | None, legal: bool) -> Self:
        if not legal:
            raise IllegalDeviceTransition(f"a device that is {self.state} cannot become {state} so")
        kept = None if state == DeviceState.UNINITIALISED else self.fingerprint
        return replace(self, state=state, detail=detail, fingerprint=kept)


@dataclass(frozen=True, repr=False)
class DeviceEvent(ByMember):
    """One change of state, with the device as it is afterwards."""

    device_id: str
    old: DeviceState
    new: DeviceState
    device: Device


@dataclass(frozen=True)
class Progress:
    """What a device is doing. `step` is a stable word, `text` a sentence for the person.

    `done` of `total` where that can be counted: the third of four outputs, the tenth of fifty inputs.
    """

    device_id: str
    step: str
    text: str
    done: int | None = None
    total: int | None = None


# The first word of a step at which the device waits for the person.
_TO_DO_THERE: Final = frozenset({"confirm", "compare", "enter", "identify"})


def waits_for_person(step: str) -> bool:
    """Whether a device at this step (`Progress.step`) shows a question and waits for the person."""
    return step.partition("-")[0] in _TO_DO_THERE


@dataclass(frozen=True)
class Deadlines:
    """How long to wait, in seconds. Nothing in this library waits without a deadline.

        operation                              while the device works        while it asks the person
        probe                                  probe                         (the same seconds)
        fingerprint                            read                          (the same seconds)
        xpubs                                  read, per_key                 (the same seconds)
        unlock                                 person                        (the same seconds)
        identify, enrol, show_address,         work                          person
        sign_message
        sign                                   work, margin                  person, margin

    Each is the time for a whole call. The steps that a worker reports decide which of the two runs, and add
    to neither (`firmware_bridge.lane.Patience`).

    Deadlines for devices and persons are tight. A process of our own may be slow on a busy machine: its
    deadline is generous, and there for a process that hangs. A process that ends is noticed at once.
    """

    start: float = 120.0
    """A worker process until it says hello. The first one imports HWI, which takes a second on an idle
    machine.
    """
    probe: float = 10.0
    read: float = 30.0
    """Keys and fingerprints, without the person."""
    per_key: float = 1.0
    """Added for each key to read. A signer with many vaults registers a hundred."""
    work: float = 60.0
    """The device loads, checks and signs, without the person."""
    person: float = 600.0
    """The person reads, compares and decides, from the moment the question is on the screen."""
    margin: float = 4.0
    """Added to both: so many times what the maker's devices work on such a transaction
    (`makers.Maker.pace`). Not every driver learns of the approval before the device has signed.
    """
    grace: float = 2.0
    """From the request to stop until the worker is killed."""
    idle: float = 30.0
    """An idle worker is ended after this time, and its device closed."""
    retry: float = 3.0
    """Between two probes of a device that is not ready."""
    retry_shared: float = 30.0
    """The same, where a probe ends the device's one session, which another program may be using."""

    def reading(self, keys: int) -> float:
        """For reading this many keys."""
        return self.read + self.per_key * keys

    def signing(self, seconds: float) -> float:
        """For the device's work on a transaction that takes its maker's devices so long."""
        return self.work + self.margin * seconds

    def review(self, seconds: float) -> float:
        """For the person to read it, while the device may work."""
        return self.person + self.margin * seconds


@dataclass(frozen=True)
class Sighting:
    """A connected device, noticed without opening it. `unsupported` says why it cannot be driven.

    `incarnation` changes when the device was plugged in again, or restarted under another product number, as
    a Ledger does for each app. Without it, a device that left and came back between two looks would not be
    noticed.
    """

    endpoint: Endpoint
    model: str
    permitted: bool = True
    unsupported: str | None = None
    incarnation: str = ""


# (endpoints in use) -> connected devices. An endpoint in use counts as connected unless it has certainly
# gone.
Listing = Callable[[Collection[Endpoint]], Awaitable[Sequence[Sighting]]]


def webusb_address(bus: int, ports: Sequence[object]) -> str:
    """The path that trezorlib gives a WebUSB device."""
    return ":".join(["webusb", f"{bus:03d}", *(str(port) for port in ports)])
