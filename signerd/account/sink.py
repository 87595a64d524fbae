"""What takes the effects of what the platform told."""

from collections.abc import Iterable
from typing import Protocol

from signerd.core.events import Effect


class Sink(Protocol):
    def perform(self, effects: Iterable[Effect]) -> None: ...
