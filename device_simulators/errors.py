"""Everything that can go wrong in setting up or handling a virtual device.

    VirtualDeviceError
    ├── InvalidSeed          the words, entropy or seed file are not a BIP-39 seed
    ├── NoSuchPrompt         an answer to a prompt that is not on the screen
    ├── InvalidFaults        a fault that the device does not know
    ├── InvalidCommand       a line of the operator that is not a command
    ├── NothingToLock        a device without a PIN was to be locked
    ├── InvalidListenAddress an address that the device cannot listen on
    └── AddressUnavailable   the address is taken

What a *host* does wrong is not here: it is answered on the wire, as the vendor's firmware does.
"""

import ipaddress
from typing import ClassVar


class VirtualDeviceError(Exception):
    """A request of its operator that a virtual device cannot carry out. `code` is stable, `hint` says what to
    do.
    """

    code: ClassVar[str] = "virtual-device"
    hint: ClassVar[str] = "Read the message; it names what is wrong."


class InvalidSeed(VirtualDeviceError):
    code = "invalid-seed"
    hint = "Give 12 to 24 English BIP-39 words, or 16 to 32 bytes of entropy."


class NoSuchPrompt(VirtualDeviceError):
    code = "no-such-prompt"
    hint = "Answer the prompt that is on the screen, if there is one; a number must be that of the prompt."


class InvalidFaults(VirtualDeviceError):
    code = "invalid-faults"
    hint = "See device_simulators.faults for the faults and phases there are."


class InvalidCommand(VirtualDeviceError):
    code = "invalid-command"
    hint = "Commands: yes, no, lock, unlock, unplug, plug, quit; as JSON also faults."


class NothingToLock(VirtualDeviceError):
    code = "nothing-to-lock"
    hint = "Start the device with a PIN."


class InvalidListenAddress(VirtualDeviceError):
    code = "invalid-listen-address"
    hint = (
        "A Trezor or Ledger listens on host:port (127.0.0.1:0 picks a port), "
        "a Coldcard on a Unix socket path."
    )


class AddressUnavailable(VirtualDeviceError):
    code = "address-unavailable"
    hint = "Stop the program that listens there, or choose another address."


def require_loopback(host: str) -> None:
    """:raises InvalidListenAddress: other machines could reach a device that keeps a seed."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise InvalidListenAddress(f"{host!r} is not a loopback address such as 127.0.0.1")
