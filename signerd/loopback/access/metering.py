"""How long a request holds the loop: its own steps are timed, and what it waits for is not."""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any


@dataclass
class Metered:
    """Awaits ``what`` in the task that awaits this; tasks of its own that it begins are not timed.

    ``clock``: seconds. ``spent``: those in which nobody else was served, also where it failed. Raises as ``what`` does.
    """

    what: Coroutine[Any, Any, None]
    clock: Callable[[], float]
    spent: float = 0.0

    def __await__(self) -> Generator[Any, None, None]:
        """What an await does, written out (PEP 380): each yield is one return to the loop."""
        heard: BaseException | None = None
        while True:
            try:
                waits_for = self._step(heard)
            except StopIteration:
                return
            try:
                heard = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, above all: it is for ``what`` to hear
                heard = error

    def _step(self, heard: BaseException | None) -> Any:
        began = self.clock()
        try:
            return self.what.send(None) if heard is None else self.what.throw(heard)
        finally:
            self.spent += self.clock() - began
