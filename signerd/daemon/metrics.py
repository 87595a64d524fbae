"""Figures about the daemon: what a person who watches several machines has a program collect. No name of a person, a vault or a proposal is in them, and no amount."""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firmware_bridge import DeviceState
from signerd.account.follower import Follower
from signerd.core.states import State
from signerd.daemon.devices import Devices
from signerd.errors import DeviceError
from signerd.feed import Feed
from signerd.journal import Journal

_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Figure:
    """``samples``: by the value of ``label``, or under "" where it has none. A total only ever grows."""

    name: str
    text: str
    samples: dict[str, float]
    label: str = ""
    total: bool = False


@dataclass(frozen=True)
class Metrics:
    journal: Journal
    devices: Devices
    follower: Follower
    feed: Feed
    clock: Callable[[], float]

    async def figures(self) -> tuple[Figure, ...]:
        return (*self._of_journal(), await self._of_devices(), *self._of_platform(), *self._of_process())

    def _of_journal(self) -> tuple[Figure, ...]:
        known = self.journal.figures()
        states = {state.value: float(known.proposals.get(state.value, 0)) for state in State}
        kinds = {kind: float(count) for kind, count in known.entries.items()}
        return (
            Figure("signerd_proposals", "Proposals known here.", states, "state"),
            Figure("signerd_decisions", "Entries of the chain of decisions.", kinds, "kind", total=True),
            Figure("signerd_signatures", "Signatures made here.", {"": known.signatures}, total=True),
        )

    async def _of_devices(self) -> Figure:
        try:
            found = Counter(device.state.value for device in await self.devices.all())
        except DeviceError:
            found = Counter()
        states = {state.value: float(found[state.value]) for state in DeviceState}
        return Figure("signerd_devices", "Devices that are connected.", states, "state")

    def _of_platform(self) -> tuple[Figure, ...]:
        heard = self.follower.state
        reach = Figure(
            "signerd_platform_reachable", "1 where the platform answered last.", {"": float(heard.reachable)}
        )
        if heard.last_heard is None:
            return (reach,)
        age = max(0.0, self.clock() - heard.last_heard)
        return reach, Figure(
            "signerd_platform_heard_age_seconds", "Since the platform's last answer.", {"": age}
        )

    def _of_process(self) -> tuple[Figure, ...]:
        return (
            Figure("signerd_feed_position", "The number of the feed's newest line.", {"": self.feed.last}),
            Figure("signerd_memory_bytes", "Resident memory of the daemon.", {"": resident_bytes()}),
        )


def resident_bytes() -> float:
    """proc_pid_statm(5); elsewhere the most it ever was."""
    try:
        return float(int(_STATM.read_text().split()[1]) * resource.getpagesize())
    except (OSError, IndexError, ValueError):
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
