"""The situations that every transcript of `tests.conformance.transcripts` says something about: one table,
and how each is played through the real bridge. `test_transcripts.py` plays them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from device_simulators.panel import refuse_all
from multisig import Network
from tests.conformance import everyday, makes, remote, rigs, trouble
from tests.conformance.everyday import at_each_screen, doing, enrolling, proving, showing
from tests.conformance.makes import Make
from tests.conformance.rigs import NETWORK
from tests.conformance.stage import SIGNED, Played, Player, Stage
from tests.conformance.transcripts import Transcript

MAINNET = Network.MAINNET
# Seconds in which a busy machine does what a virtual device has to work at; none of it is waited for where it
# is done.
_LONG_WORK = 120.0
# And in which it signs one input: where the device has forgotten our command, this is waited for.
_SOON = 4.0


def _no_options(_make: Make) -> Mapping[str, object] | None:
    return {}


def _if_it_enrols(make: Make) -> Mapping[str, object] | None:
    return {} if make.enrols else None


def _with_pin(make: Make) -> Mapping[str, object] | None:
    """A Ledger is locked without one. A Coldcard has no USB before its PIN is entered (start_login_sequence
    in shared/actions.py).
    """
    return None if make is makes.COLDCARD else make.pin


def _with_typed_pin(make: Make) -> Mapping[str, object] | None:
    return make.pin if make.types_pin else None


def _with_passphrase(make: Make) -> Mapping[str, object] | None:
    return {"passphrase_protection": True} if make is makes.TREZOR else None


@dataclass(frozen=True)
class Situation:
    """`options` are what the device is started with; None where the make cannot be brought into the
    situation, which its transcript calls absent. `network` is the bridge's; the device's is always
    `rigs.NETWORK`. `person` is its deadline in seconds, and `work` that of a virtual device's own work,
    and of a reading.
    """

    text: str
    play: Player
    options: Callable[[Make], Mapping[str, object] | None] = _no_options
    network: Network = NETWORK
    person: float = rigs.QUICK.person
    work: float | None = None


SITUATIONS: dict[str, Situation] = {
    "found": Situation("plugged in, and asked who it is", doing(everyday.found)),
    "key": Situation("the key of a vault's account", doing(everyday.key())),
    "keys": Situation("sixteen keys in one conversation", doing(everyday.keys)),
    "key-other-network": Situation(
        "a mainnet key of a device for test networks", doing(everyday.key(MAINNET)), network=MAINNET
    ),
    "enrol-other-network": Situation(
        "a mainnet vault enrolled on a device for test networks",
        doing(enrolling(everyday.MAINNET_VAULT)),
        _if_it_enrols,
        network=MAINNET,
    ),
    "sign-other-network": Situation(
        "a mainnet payment on a device for test networks",
        doing(everyday.signing(everyday.MAINNET_VAULT), answer=SIGNED),
        network=MAINNET,
    ),
    "enrol": Situation("a vault is enrolled", doing(enrolling())),
    "enrol-known": Situation("a vault that is enrolled already", doing(enrolling(), enrolled=True)),
    "enrol-refused": Situation("the person refuses a vault", doing(enrolling(), refuse_all), _if_it_enrols),
    "enrol-after-refusal": Situation(
        "a vault asked for again at once after a refusal", everyday.enrol_after_refusal, _if_it_enrols
    ),
    "enrol-same-name": Situation(
        "another vault of the same name",
        doing(enrolling(everyday.OTHER_QUORUM), enrolled=True),
        _if_it_enrols,
    ),
    "enrol-cancelled": Situation(
        "an enrolment is cancelled", doing(enrolling(), strike=Stage.cancel), _if_it_enrols
    ),
    "enrol-unplugged": Situation(
        "unplugged during an enrolment", doing(enrolling(), strike=Stage.unplug), _if_it_enrols
    ),
    "address": Situation("a vault's address", doing(showing, enrolled=True)),
    "address-profile": Situation("a profile's address", doing(everyday.showing_profile)),
    "address-refused": Situation(
        "the person says that it is another address", doing(showing, refuse_all, enrolled=True), person=2.0
    ),
    "address-cancelled": Situation(
        "cancelled while an address is shown", doing(showing, enrolled=True, strike=Stage.cancel)
    ),
    "address-unknown": Situation(
        "an address of a vault that was not enrolled", doing(showing), _if_it_enrols
    ),
    "message": Situation("a message", everyday.message("I am here")),
    "message-unicode": Situation("a message that is not ASCII", everyday.message("Grüße")),
    "message-241": Situation("a message of 241 bytes", everyday.message(everyday.LONG)),
    "message-1025": Situation("a message of 1,025 bytes", everyday.message(everyday.TOO_LONG)),
    "message-refused": Situation(
        "a message refused at each screen", at_each_screen(proving(), Stage.press_no)
    ),
    "message-cancelled": Situation(
        "a message cancelled at each screen", at_each_screen(proving(), Stage.cancel)
    ),
    "sign-1": Situation("a payment of 1 input", everyday.spend(1)),
    "sign-10": Situation("a payment of 10 inputs", everyday.spend(10)),
    "sign-50": Situation("a payment of 50 inputs", everyday.spend(50), person=_LONG_WORK),
    "sign-513": Situation("a payment of 513 inputs", everyday.spend(513), person=_LONG_WORK),
    "sign-two-payments": Situation("two payments", everyday.two_payments_shown()),
    "sign-self": Situation("everything to the vault itself", everyday.signing_of(everyday.self_transfer)),
    "sign-profile": Situation("a payment of a profile", doing(everyday.signing_profile, answer=SIGNED)),
    "sign-unknown": Situation(
        "a payment of a vault that was not enrolled", doing(Stage.sign, answer=SIGNED), _if_it_enrols
    ),
    "sign-large": Situation(
        "100 kB of previous transactions", everyday.signing_of(everyday.large), person=_LONG_WORK
    ),
    **{
        f"op-return-{size}": Situation(f"OP_RETURN of {size} bytes", everyday.op_return(size))
        for size in (20, 31, 32, 75, 76, 80)
    },
    "sign-p2tr-off-curve": Situation(
        "P2TR to a key that is not on the curve", everyday.signing_of(everyday.off_the_curve)
    ),
    "high-fee": Situation("a fee of half the amount", everyday.spend(1, fee=25_000)),
    "lock-time": Situation("a lock time", everyday.spend(1, locktime=500)),
    "lock-time-final": Situation(
        "a lock time without effect", everyday.signing_of(everyday.lock_time_without_effect)
    ),
    "sign-refused": Situation(
        "a payment refused at each screen", at_each_screen(Stage.sign, Stage.press_no, enrolled=True)
    ),
    "sign-cancelled": Situation(
        "a payment cancelled at each screen", at_each_screen(Stage.sign, Stage.cancel, enrolled=True)
    ),
    "sign-unplugged": Situation(
        "unplugged at each screen of a payment",
        at_each_screen(Stage.sign, Stage.unplug, Stage.mend, enrolled=True),
    ),
    "sign-killed": Situation(
        "our worker killed at each screen of a payment", at_each_screen(Stage.sign, Stage.kill, enrolled=True)
    ),
    "late-yes-killed": Situation(
        "our worker killed, then the person says yes, then the same payment again",
        trouble.answered_late(Stage.kill),
    ),
    "late-yes-cancelled": Situation(
        "cancelled, then the person says yes, then the same payment again",
        trouble.answered_late(Stage.cancel),
    ),
    "left-open-same": Situation(
        "our worker killed, no button pressed, then the same payment again",
        trouble.left_open(trouble.one_input),
        person=2.0,
    ),
    "left-open-other": Situation(
        "our worker killed, no button pressed, then another payment",
        trouble.left_open(everyday.two_payments),
        person=2.0,
    ),
    "sign-unanswered": Situation(
        "no button is pressed", doing(Stage.sign, enrolled=True, strike=trouble.nothing), person=0.7
    ),
    "second-before": Situation(
        "another program has used it since", trouble.used_before, work=_SOON, person=_SOON
    ),
    "second-asked": Situation(
        "another program uses it while the person is asked",
        doing(Stage.sign, enrolled=True, strike=trouble.use_it, answer=SIGNED),
        person=12.0,
    ),
    "second-working": Situation(
        "another program uses it while it works", trouble.used_while_working, work=_SOON, person=_SOON
    ),
    "locked": Situation("locked", trouble.locked, _with_pin),
    "locked-asked": Situation("locked while the person is asked", trouble.locked_while_asked, _with_pin),
    "pin-right": Situation("the right PIN", trouble.unlocked(), _with_typed_pin),
    "pin-wrong": Situation("a wrong PIN", trouble.unlocked(refuse_all, pin="4321"), _with_typed_pin),
    "passphrase": Situation(
        "a passphrase from the host", trouble.unlocked(passphrase="horse"), _with_passphrase
    ),
    "passphrase-empty": Situation("an empty passphrase from the host", trouble.unlocked(), _with_passphrase),
}


async def play(transcript: Transcript, name: str, folder: Path) -> tuple[list[Played], dict[str, str]] | None:
    """Play it on the virtual device of this model, or on the one at the endpoint that was given: its ends,
    and the values of the placeholders; None where the model has no such thing.
    """
    situation = SITUATIONS[name]
    (make,) = (make for make in makes.VIRTUAL if make.family == transcript.family)
    options = situation.options(make)
    if options is None:
        return None
    elsewhere = remote.RUN.remote is not None
    rig = make.rig(folder, **options)
    bound = (
        {}
        if elsewhere or situation.work is None
        else {"work": situation.work, "read": situation.work, "margin": 0.0}
    )
    deadlines = rigs.replace_deadlines(person=situation.person, **bound)
    async with rigs.bridged(rig, deadlines=deadlines, network=situation.network) as (bridge, [device]):
        stage = Stage(make, rig, bridge, device)
        ends = await situation.play(stage)
    return (ends if isinstance(ends, list) else [ends]), stage.values
