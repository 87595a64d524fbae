"""What was noticed of a device without opening it."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from firmware_bridge.model import Endpoint


@dataclass(frozen=True)
class Sighting:
    """A device that is there. `unsupported` says why nobody can drive it.

    `incarnation` changes when it was plugged in again, or started again under another product number, as a Ledger does for
    each app: between two looks nobody may have seen it go.
    """

    endpoint: Endpoint
    model: str
    permitted: bool = True
    unsupported: str | None = None
    incarnation: str = ""

    @property
    def can_be_opened(self) -> bool:
        return self.permitted and self.unsupported is None


# (endpoints in use) -> what is there. An endpoint in use is reported as there unless it surely is not.
Listing = Callable[[Collection[Endpoint]], Awaitable[Sequence[Sighting]]]


def webusb_address(bus: int, ports: Sequence[object]) -> str:
    """The path that trezorlib gives a WebUSB device."""
    return ":".join(["webusb", f"{bus:03d}", *(str(port) for port in ports)])
