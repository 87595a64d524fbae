"""What a check may look at."""

from dataclasses import dataclass

from multisig import Inspection, Psbt
from signerd.core.values import Pin, Snapshot, Surroundings


@dataclass(frozen=True)
class Case:
    """One proposal and what this machine knows about its surroundings."""

    snapshot: Snapshot
    psbt: Psbt
    around: Surroundings


@dataclass(frozen=True)
class InspectedCase:
    """The same, with the pinned vault and what the PSBT's own bytes say against it."""

    snapshot: Snapshot
    psbt: Psbt
    around: Surroundings
    pin: Pin
    inspection: Inspection

    @property
    def returning(self) -> tuple[tuple[bytes, int], ...]:
        """(script, satoshis) of every output that is proven to come back."""
        return tuple(
            (self.psbt.outputs[change.output_index].script_pubkey, int(change.amount))
            for change in self.inspection.change
        )

    @property
    def paid(self) -> int:
        """Satoshis that are paid to somebody: no change, no fee."""
        return sum(int(payment.amount) for payment in self.inspection.payments)

    @property
    def outgoing(self) -> frozenset[tuple[bytes, int]]:
        """(script, satoshis) of everything that is paid to somebody."""
        return frozenset((p.script_pubkey, int(p.amount)) for p in self.inspection.payments)
