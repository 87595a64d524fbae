"""Carries out the faults that a device was told to show."""

from collections.abc import Callable

from device_simulators.coldcard.errors import PowerLost
from device_simulators.faults import Faults, Phase

# Header: 63 bytes, last, encrypted. Whatever key is in use, the host reads noise.
GARBAGE = b"\xff" * 64


class Misbehaviour:
    """Asked at every phase. `vanish` is called once, at the moment the cable is to be pulled."""

    def __init__(self, faults: Callable[[], Faults], vanish: Callable[[], None]) -> None:
        self._faults = faults
        self.stalled = False
        self._vanish = vanish
        self._garbage_due = False
        self._garbage_spent = False

    @property
    def faults(self) -> Faults:
        return self._faults()

    def reach(self, phase: Phase) -> None:
        """Raises PowerLost where the work is to end here and now."""
        if phase is self.faults.stall_at:
            self.stalled = True
        if phase is self.faults.garbage_at and not self._garbage_spent:
            self._garbage_due = self._garbage_spent = True
        if phase is self.faults.vanish_at:
            self._vanish()
            raise PowerLost(phase)

    def take_garbage(self) -> bool:
        """Is the answer that is about to go out the one to spoil?"""
        due, self._garbage_due = self._garbage_due, False
        return due
