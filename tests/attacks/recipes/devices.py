"""S18 and S19: devices that answer wrongly, or are others."""

from dataclasses import dataclass, field
from typing import Any

from tests.attacks.recipes.scene import Named


@dataclass(frozen=True)
class Misbehaviour(Named):
    """A device that is another, or works wrongly. ``faults`` as ``Faults.parse`` takes them.

    ``holds``: whose keys it has; ``swaps``: it changes to those at this prompt (a played device only). ``outcome``: the code
    of the outcome, None where it signs; ``asks``: whether its person was asked.
    """

    holds: str = "alice"
    swaps: str | None = None
    faults: dict[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    asks: bool = True


MISBEHAVIOURS = (
    Misbehaviour("the right keys"),
    Misbehaviour("another cosigner's keys", holds="bob", outcome="wrong-device", asks=False),
    Misbehaviour("a stranger's keys", holds="mallory", outcome="wrong-device", asks=False),
    Misbehaviour("our seed under another passphrase", holds="alice with a passphrase", outcome="wrong-device", asks=False),
    Misbehaviour("the passphrase is swapped while the person looks", holds="alice", swaps="alice with a passphrase", outcome="wrong-device"),
    Misbehaviour("a wrong signature on the first input", faults={"wrong_signatures": [0]}, outcome="bad-device-signature"),
    Misbehaviour("a wrong signature on the second input", faults={"wrong_signatures": [1]}, outcome="bad-device-signature"),
    Misbehaviour("no signature at all", faults={"missing_signatures": [0, 1]}, outcome="device-fault"),
    Misbehaviour("bytes that are no answer", faults={"garbage_at": "return"}, outcome="device-fault"),
)  # fmt: skip
