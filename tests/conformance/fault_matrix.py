"""What happens when something goes wrong in the middle of a signature: for each make and each fault, the
outcome. As data.

`test_faults.py` runs each cell, and the project's docs/build/devices.md shows them as a table.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from device_simulators.faults import Faults, Phase
from device_simulators.panel import ask_person, refuse_all
from firmware_bridge import (
    BridgeError,
    Busy,
    DeviceFault,
    Disconnected,
    Family,
    Locked,
    RefusedByPerson,
    TimedOut,
    WorkerCrashed,
)
from tests.conformance import second_program
from tests.conformance.makes import settle
from tests.conformance.rigs import VIRTUAL, Rig

# Seconds until the person is no longer waited for, where the outcome is that.
PATIENCE = 1.5


@dataclass(frozen=True)
class Fault:
    """`prepare` and `before` come before the operation; `strike` once the question is on the screen, where
    the fault is of that moment.
    """

    text: str
    prepare: Callable[[Rig], None] = lambda _rig: None
    strike: Callable[[Rig], Awaitable[None]] | None = None
    before: Callable[[Rig], Awaitable[None]] | None = None
    patience: float = PATIENCE


def _with(**faults: object) -> Callable[[Rig], None]:
    def prepare(rig: Rig) -> None:
        rig.device.faults = Faults(**faults)

    return prepare


def _refuse(rig: Rig) -> None:
    rig.panel.script = refuse_all


def _ask(rig: Rig) -> None:
    rig.panel.script = ask_person


async def _lock(rig: Rig) -> None:
    """A Trezor lets the person finish, and is locked afterwards."""
    rig.device.lock()
    settle(rig)


async def _unplug(rig: Rig) -> None:
    await rig.unplug()


async def _kill(rig: Rig) -> None:
    rig.workers[-1].kill()


async def _grab(rig: Rig) -> None:
    """The person says yes afterwards: the program that still listens gets it."""
    await second_program.grab_while_asked(rig)
    settle(rig)


async def _nothing(_rig: Rig) -> None:
    """No button is pressed."""


_PHASES = {
    Phase.RECEIVE: "before anything is shown",
    Phase.PROMPT: "while the person is asked",
    Phase.SIGN: "before it signs",
    Phase.RETURN: "while it answers",
}

FAULTS: dict[str, Fault] = {
    "refuse": Fault("the person says no", _refuse),
    "lock": Fault("locked while the person is asked", _ask, _lock),
    "unplug-waiting": Fault("unplugged while the person is asked", _ask, _unplug),
    **{f"vanish-{p}": Fault(f"gone {words}", _with(vanish_at=p)) for p, words in _PHASES.items()},
    "silence": Fault("no button is pressed", _ask, _nothing),
    **{f"stall-{p}": Fault(f"silent for ever {words}", _with(stall_at=p)) for p, words in _PHASES.items()},
    **{f"garbage-{p}": Fault(f"garbage {words}", _with(garbage_at=p)) for p, words in _PHASES.items()},
    "grab": Fault("a second program opens it while the person is asked", _ask, _grab),
    "used": Fault("a second program has used it since our last operation", before=second_program.grab),
    "kill": Fault("our worker is killed while the person is asked", _ask, _kill),
}

# After these a person plugs the device in again.
PLUGGED_IN_AGAIN = frozenset(
    name for name in FAULTS if name.startswith(("unplug", "vanish", "stall", "garbage"))
)
# A fake is at no wire that a second program could find.
AT_THE_WIRE = frozenset({"grab", "used"})

Outcome = type[BridgeError] | tuple[type[BridgeError], ...] | None


def _each(outcome: Outcome) -> dict[Family, Outcome]:
    return dict.fromkeys(VIRTUAL, outcome)


# None: the fault has no effect; the signature comes as if nothing had happened.
OUTCOMES: dict[str, dict[Family, Outcome]] = {
    "refuse": _each(RefusedByPerson),
    "lock": _each(Locked),
    "unplug-waiting": _each(Disconnected),
    **{f"vanish-{p}": _each(Disconnected) for p in _PHASES},
    "silence": _each(TimedOut),
    **{f"stall-{p}": _each(TimedOut) for p in _PHASES},
    **{f"garbage-{p}": _each(DeviceFault) for p in _PHASES},
    # A Coldcard takes packets from every program: a question of ours in the middle of the other's handshake
    # makes one message with it, which it says it cannot read; after the handshake we cannot read what it
    # says.
    "grab": {Family.TREZOR: None, Family.COLDCARD: (DeviceFault, Busy), Family.LEDGER: Disconnected},
    "used": {Family.TREZOR: None, Family.COLDCARD: None, Family.LEDGER: TimedOut},
    "kill": _each(WorkerCrashed),
}


def possible(outcome: Outcome) -> tuple[type[BridgeError], ...]:
    """The errors that it may be; none of them where the signature comes."""
    if outcome is None:
        return ()
    return outcome if isinstance(outcome, tuple) else (outcome,)
