"""What the program knows about one endpoint, from one look and one operation to the next."""

import asyncio
from dataclasses import dataclass, field

from firmware_bridge.errors import Cancelled, Disconnected
from firmware_bridge.lane import Lane
from firmware_bridge.model import Device
from firmware_bridge.sighting import Sighting
from multisig import Fingerprint


@dataclass(frozen=True)
class Answered:
    """A device's answer to the transaction of this digest, not believed yet."""

    digest: bytes
    signer: Fingerprint
    psbt: str = field(repr=False)


@dataclass(eq=False)
class Use:
    """One operation's claim to a device, from the moment it looks for it. Somebody may give the operation up meanwhile, or the
    device may leave: what comes in its place is none of the operation's.
    """

    cancelled: bool = False
    lost: bool = False


@dataclass
class Record:
    """What the program knows about one endpoint, and its lane."""

    device: Device
    lane: Lane
    sighting: Sighting
    use: Use | None = None
    probed_at: float | None = None
    probe: asyncio.Task[None] | None = None
    # It did not answer a probe well, and may be in another program's hands, which every probe disturbs.
    perhaps_shared: bool = False
    # Another program had it open when it was last asked.
    held: bool = False
    # How many probes in a row have not found it well.
    fruitless: int = 0
    # Vaults that the holder of these keys has refused for not knowing them, though its quick check says otherwise.
    unknown_vaults: set[tuple[Fingerprint, str]] = field(default_factory=set)
    # The transaction that the device took last, where no answer to it has come: it may still ask about it, or hold the answer.
    unanswered: bytes | None = None
    # What the device answered before it left, when its keys could not be looked at once more.
    answered: Answered | None = None

    @property
    def in_use(self) -> bool:
        return self.use is not None

    def require_wanted(self) -> None:
        """A lane's call forgets how it was stopped; an operation makes several.

        :raises Cancelled: the operation that has the device was given up.
        :raises Disconnected: the device that it began with has left, whatever is there now.
        """
        if self.use is not None and self.use.cancelled:
            raise Cancelled
        if self.use is not None and self.use.lost:
            raise Disconnected
