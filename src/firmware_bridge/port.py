"""What the worker's loop asks of an open device, whoever drives it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

# (step, text): what the device waits for, told while an operation goes on
Notify = Callable[[str, str], None]


class DeviceFailure(Exception):
    """A device's failure that has its outcome already: (code of a `BridgeError`, detail)."""

    def __init__(self, code: str, detail: str | None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class DeviceClient(Protocol):
    """One open device. Every operation takes and returns plain values and raises `DeviceFailure` only."""

    def call(self, op: str, args: Mapping[str, Any]) -> Any: ...

    def cancel(self) -> None:
        """From another thread: ask the device to give up what it waits for."""

    def close(self) -> None: ...


# (notify, recover) -> an open device
Opener = Callable[[Notify, bool], DeviceClient]
