"""How much longer one call may take: the device has its seconds to work, the person theirs to answer."""

from firmware_bridge.model import waits_for_person


class Patience:
    """The time that is left of one call.

    Each side has its seconds for the whole call, and only one side's run. A step that the worker tells decides whose; no step adds any,
    so that a worker in disorder cannot be waited for longer than both together. Without `person` all time is the device's.
    """

    def __init__(self, work: float, person: float | None, now: float) -> None:
        self._left = {False: work, True: 0.0 if person is None else person}
        self._asks = person is not None
        self._at_person = False
        self._since = now

    @property
    def ends(self) -> float:
        """The moment at which the side that is waited for has used up its seconds, on the clock of `now`."""
        return self._since + self._left[self._at_person]

    def step(self, step: str, now: float) -> None:
        """The worker has told this step."""
        self._left[self._at_person] -= now - self._since
        self._since = now
        self._at_person = self._asks and waits_for_person(step)
