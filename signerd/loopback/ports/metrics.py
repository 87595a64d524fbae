"""The port for figures about the daemon: what a person who watches several machines has a program collect."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Figure:
    """``samples``: by the value of ``label``, or under "" where it has none. A total only ever grows."""

    name: str
    text: str
    samples: dict[str, float]
    label: str = ""
    total: bool = False


@dataclass
class Refused:
    """Calls that were refused, by the code of the error: as many names as the tree has leaves. Whoever serves counts."""

    counts: dict[str, int] = field(default_factory=dict)

    def count(self, code: str) -> None:
        self.counts[code] = self.counts.get(code, 0) + 1


class MetricsPort(Protocol):
    async def figures(self) -> tuple[Figure, ...]: ...
