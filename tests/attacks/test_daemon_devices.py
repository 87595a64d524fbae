"""S18 and S19 through the daemon."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from device_simulators.faults import Faults
from device_simulators.panel import Decision, Prompt
from device_simulators.seed import Seed
from signerd.core.states import State
from tests.attacks.cases import sound
from tests.attacks.desk import desk_with
from tests.attacks.people import ALICE, BOB, MALLORY
from tests.attacks.recipes.scene import Named
from tests.conformance import makes

PASSPHRASE = ALICE.seed.with_passphrase("mallory's")
WRONG, BAD, FAULT = "wrong-device", "bad-device-signature", "device-fault"


@dataclass(frozen=True)
class Misbehaviour(Named):
    """A device that is another, or works wrongly. ``faults`` as ``Faults.parse`` takes them.

    ``swaps``: its keys are these from the last prompt on (a played device only). ``outcome``: the code of the
    outcome, None where it signs; ``asks``: whether its person was asked.
    """

    holds: Seed = ALICE.seed
    swaps: Seed | None = None
    faults: Mapping[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    asks: bool = True


MISBEHAVIOURS = (
    Misbehaviour("the right keys"),
    Misbehaviour("another cosigner's keys", BOB.seed, outcome=WRONG, asks=False),
    Misbehaviour("a stranger's keys", MALLORY.seed, outcome=WRONG, asks=False),
    Misbehaviour("our seed under another passphrase", PASSPHRASE, outcome=WRONG, asks=False),
    Misbehaviour("the passphrase is swapped while the person looks", swaps=PASSPHRASE, outcome=WRONG),
    Misbehaviour("a wrong signature on the first input", faults={"wrong_signatures": [0]}, outcome=BAD),
    Misbehaviour("a wrong signature on the second input", faults={"wrong_signatures": [1]}, outcome=BAD),
    Misbehaviour("no signature at all", faults={"missing_signatures": [0, 1]}, outcome=FAULT),
    Misbehaviour("bytes that are no answer", faults={"garbage_at": "return"}, outcome=FAULT),
)
PAIRS = [
    (entry, (makes.FAKES if entry.swaps else makes.VIRTUAL)[number % 3])
    for number, entry in enumerate(MISBEHAVIOURS)
]


def ids(value) -> str:
    return makes.named(value) if isinstance(value, makes.Make) else str(value)


def swapping(desk, seed):
    """A host that gives another passphrase while the person looks."""

    def decide(prompt: Prompt) -> Decision:
        if prompt.kind == "sign-total":
            desk.rig.device.seed = seed
        return Decision.YES

    return decide


def failures(desk, psbt_id: str) -> list[str]:
    """The codes with which the device library ended the attempts."""
    entries = desk.served.on_loop(lambda: tuple(desk.served.service.journal.audit()))
    notes = (entry.note for entry in entries if entry.note.subject == psbt_id)
    return [note.facts["code"] for note in notes if note.kind == "interrupted"]


@pytest.mark.parametrize(("entry", "make"), PAIRS, ids=ids)
def test_s18_s19_only_sound_signatures_of_the_right_device_are_submitted(entry, make, folder):
    proposal = sound()
    with desk_with(make, folder, seed=entry.holds) as desk:
        desk.rig.device.faults = Faults.parse(entry.faults)
        if entry.swaps:
            desk.rig.panel.script = swapping(desk, entry.swaps)
        view, shown = desk.offer(proposal.snapshot()), desk.shown
        if not entry.asks:
            desk.say_yes(view)
            desk.rounds(3)
            assert desk.state_of(proposal.psbt_id) is State.WAITING_DEVICE
        else:
            assert desk.approve(view) is None
            ended = State.SUBMITTED if entry.outcome is None else State.INTERRUPTED
            assert desk.state_of(proposal.psbt_id) is ended
            assert failures(desk, proposal.psbt_id) == ([] if entry.outcome is None else [entry.outcome])
        assert bool(shown.prompts) is entry.asks
        assert desk.submitted(proposal.psbt_id) == int(entry.outcome is None)
