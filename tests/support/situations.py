"""The situations that every transcript of `firmware_bridge.virtual.transcripts` says something about: one table, and how each
is played through the real bridge. tests/firmware_bridge/contract/test_transcripts.py plays them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from firmware_bridge import BridgeError, Busy
from firmware_bridge.virtual.panel import Script, approve_all, refuse_all
from firmware_bridge.virtual.transcripts import Transcript
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    Network,
    Psbt,
    Vault,
    build_psbt,
    encode_address,
    multisig_account_path,
    op_return_script,
    p2tr,
    profile_account_path,
    sats,
)
from tests.support import makes, rigs, second_program, wallets
from tests.support.makes import NAME, VAULT, Make, Person
from tests.support.rigs import ACCOUNT, NETWORK
from tests.support.stage import Played, Stage

Player = Callable[[Stage], Awaitable[Played | list[Played]]]
_SIGNED = "signed"
_MAINNET_VAULT = rigs.make_vault(network=Network.MAINNET)
_MESSAGE_PATH = ACCOUNT / "0/0"
# Longer than any make takes in its own text; and than a Trezor takes at all.
_LONG, _TOO_LONG = "a" * 241, "a" * 1025


def _no_options(_make: Make) -> Mapping[str, object] | None:
    return {}


def _if_it_enrols(make: Make) -> Mapping[str, object] | None:
    return make.strict if make.enrols else None


def _with_pin(make: Make) -> Mapping[str, object] | None:
    """The others are locked without one."""
    return make.pin


def _with_typed_pin(make: Make) -> Mapping[str, object] | None:
    return make.pin if make.types_pin else None


def _with_passphrase(make: Make) -> Mapping[str, object] | None:
    return {"passphrase_protection": True} if make is makes.TREZOR else None


@dataclass(frozen=True)
class Situation:
    """`options` are what the device is started with; None where the make cannot be brought into the situation, which its
    transcript calls absent. `network` is the bridge's; the device's is always `rigs.NETWORK`. `person` is its deadline in seconds.
    """

    text: str
    play: Player
    options: Callable[[Make], Mapping[str, object] | None] = _no_options
    network: Network = NETWORK
    person: float = rigs.QUICK.person


# -- reading ---------------------------------------------------------------------------------------------------------


async def _found(stage: Stage) -> Played:
    return await stage.play(stage.bridge.refresh())


async def _key(stage: Stage) -> Played:
    return await stage.play(stage.bridge.xpub(stage.device.id, ACCOUNT))


async def _key_elsewhere(stage: Stage) -> Played:
    path = multisig_account_path(Network.MAINNET)
    return await stage.play(stage.bridge.xpub(stage.device.id, path))


async def _enrol_elsewhere(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage, _MAINNET_VAULT))


async def _sign_elsewhere(stage: Stage) -> Played:
    return await stage.play(stage.sign(policy=_MAINNET_VAULT), answer=_SIGNED)


async def _keys(stage: Stage) -> Played:
    paths = [
        make(NETWORK, number) for number in range(8) for make in (multisig_account_path, profile_account_path)
    ]
    return await stage.play(stage.bridge.xpubs(stage.device.id, paths))


# -- enrolment -------------------------------------------------------------------------------------------------------


def _enrolling(stage: Stage, vault: Vault = VAULT, name: str = NAME) -> Awaitable[None]:
    return stage.bridge.enrol(stage.device.id, vault, name)


async def _enrol(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage))


async def _enrol_known(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_enrolling(stage))


async def _enrol_refused(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage), refuse_all)


async def _enrol_after_refusal(stage: Stage) -> Played:
    await stage.play(_enrolling(stage), refuse_all)
    return await stage.play(_enrolling(stage))


async def _enrol_same_name(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_enrolling(stage, Vault(NETWORK, 1, VAULT.cosigners)))


async def _enrol_cancelled(stage: Stage) -> Played:
    return await stage.struck(_enrolling(stage), _cancel(stage))


async def _enrol_unplugged(stage: Stage) -> Played:
    return await stage.struck(_enrolling(stage), stage.rig.unplug)


# -- addresses -------------------------------------------------------------------------------------------------------


def _showing(stage: Stage) -> Awaitable[str]:
    return stage.bridge.show_address(stage.device.id, VAULT, RECEIVE, 0)


async def _address(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_showing(stage))


async def _address_refused(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_showing(stage), refuse_all)


async def _address_cancelled(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.struck(_showing(stage), _cancel(stage))


async def _address_unknown(stage: Stage) -> Played:
    return await stage.play(_showing(stage))


async def _address_profile(stage: Stage) -> Played:
    profile = makes.profile_of(stage.rig)
    stage.values["address"] = profile.address(RECEIVE, 3)
    return await stage.play(stage.bridge.show_address(stage.device.id, profile, RECEIVE, 3))


# -- messages --------------------------------------------------------------------------------------------------------


def _message(text: str) -> Player:
    async def play(stage: Stage) -> Played:
        stage.values["text"] = text
        return await stage.play(_proving(stage, text), answer=_SIGNED)

    return play


def _proving(stage: Stage, text: str = "I am here") -> Awaitable[bytes]:
    return stage.bridge.sign_message(stage.device.id, text, _MESSAGE_PATH)


async def _message_refused(stage: Stage) -> list[Played]:
    return await stage.at_each_screen(lambda: _proving(stage), _press_no(stage))


async def _message_cancelled(stage: Stage) -> list[Played]:
    return await stage.at_each_screen(lambda: _proving(stage), _cancel(stage))


# -- transactions ----------------------------------------------------------------------------------------------------


def _sign(make_psbt: Callable[[], Psbt]) -> Player:
    async def play(stage: Stage) -> Played:
        await stage.enrol()
        return await stage.play(stage.sign(make_psbt()), answer=_SIGNED)

    return play


def _spend(inputs: int, **how: int) -> Player:
    return _sign(lambda: wallets.make_spend(VAULT, n_inputs=inputs, **how))


def _pay_to(*outputs: wallets.TxOut | ChangeTo) -> Psbt:
    """One coin of 100,000 sat into these outputs."""
    return build_psbt(VAULT, [wallets.fund(VAULT, 100_000)], list(outputs), 0)


def _op_return(size: int) -> Player:
    data = bytes(range(128, 128 + size))
    note, change = wallets.TxOut(sats(0), op_return_script(data)), ChangeTo(sats(49_000), CHANGE, 7)

    async def play(stage: Stage) -> Played:
        stage.values["data"] = data.hex()
        return await _sign(lambda: _pay_to(wallets.pay(50_000), note, change))(stage)

    return play


def _self_transfer() -> Psbt:
    return _pay_to(ChangeTo(sats(99_000), CHANGE, 7))


def _two_payments() -> Psbt:
    return _pay_to(wallets.pay(50_000), wallets.pay(20_000, "baker"), ChangeTo(sats(29_000), CHANGE, 7))


def _lock_time_without_effect() -> Psbt:
    psbt = wallets.make_spend(VAULT, n_inputs=1, locktime=500)
    return wallets.with_inputs(psbt, *(replace(item, sequence=0xFFFFFFFF) for item in psbt.inputs))


def _off_the_curve() -> Psbt:
    """No point of the curve has x = 5 (BIP-340's lift_x fails)."""
    output = wallets.TxOut(sats(50_000), p2tr((5).to_bytes(32)))
    return _pay_to(output, ChangeTo(sats(49_000), CHANGE, 7))


def _large() -> Psbt:
    """About 100 kB, nearly all of it previous transactions."""
    coins = [wallets.fund(VAULT, 100_000, index=index, outputs=300) for index in range(10)]
    return build_psbt(VAULT, coins, [wallets.pay(50_000), ChangeTo(sats(949_000), CHANGE, 7)], 0)


async def _two_payments_shown(stage: Stage) -> Played:
    stage.values["payee2"] = encode_address(wallets.foreign_script("baker"), NETWORK)
    return await _sign(_two_payments)(stage)


async def _sign_profile(stage: Stage) -> Played:
    return await stage.play(stage.sign(policy=makes.profile_of(stage.rig)), answer=_SIGNED)


async def _sign_unknown(stage: Stage) -> Played:
    return await stage.play(stage.sign(), answer=_SIGNED)


# -- what goes wrong -------------------------------------------------------------------------------------------------


def _press_no(stage: Stage) -> Callable[[], Awaitable[None]]:
    async def strike() -> None:
        stage.rig.panel.press_no()

    return strike


def _cancel(stage: Stage) -> Callable[[], Awaitable[None]]:
    async def strike() -> None:
        await stage.bridge.cancel(stage.device.id)

    return strike


def _kill(stage: Stage) -> Callable[[], Awaitable[None]]:
    async def strike() -> None:
        stage.rig.workers[-1].kill()

    return strike


async def _nothing() -> None:
    """Nobody presses a button."""


async def _sign_refused(stage: Stage) -> list[Played]:
    await stage.enrol()
    return await stage.at_each_screen(stage.sign, _press_no(stage))


async def _sign_cancelled(stage: Stage) -> list[Played]:
    await stage.enrol()
    return await stage.at_each_screen(stage.sign, _cancel(stage))


async def _sign_unplugged(stage: Stage) -> list[Played]:
    await stage.enrol()
    return await stage.at_each_screen(stage.sign, stage.rig.unplug, stage.rig.mend)


async def _sign_killed(stage: Stage) -> list[Played]:
    await stage.enrol()
    return await stage.at_each_screen(stage.sign, _kill(stage))


def _answered_late(strike_with: Callable[[Stage], Callable[[], Awaitable[None]]]) -> Player:
    """The host has gone; the person says yes, and the same is asked for again."""

    async def play(stage: Stage) -> Played:
        await stage.enrol()
        await stage.struck(stage.sign(), strike_with(stage))
        makes.settle(stage.rig)
        await _until_free(stage)
        return await stage.play(stage.sign(), answer=_SIGNED)

    return play


async def _until_free(stage: Stage) -> None:
    """The device has done what the person said yes to, or is gone."""
    async with asyncio.timeout(rigs.QUICK.person):
        while True:
            try:
                await stage.bridge.fingerprint(stage.device.id)
            except Busy:
                continue
            except BridgeError:
                pass
            return


def _left_open(again: Callable[[], Psbt]) -> Player:
    """The host's worker is killed, no button is pressed, and this is asked for next."""

    async def play(stage: Stage) -> Played:
        await stage.enrol()
        await stage.struck(stage.sign(_one_input()), _kill(stage))
        return await stage.play(stage.sign(again()), answer=_SIGNED)

    return play


def _one_input() -> Psbt:
    return wallets.make_spend(VAULT, n_inputs=1)


async def _unanswered(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.struck(stage.sign(), _nothing)


async def _used_before(stage: Stage) -> Played:
    await stage.enrol()
    await second_program.grab(stage.rig)
    return await stage.play(stage.sign(), answer=_SIGNED)


async def _used_while_asked(stage: Stage) -> Played:
    async def strike() -> None:
        await second_program.grab(stage.rig)
        makes.settle(stage.rig)

    await stage.enrol()
    return await stage.struck(stage.sign(), strike, answer=_SIGNED)


async def _used_while_working(stage: Stage) -> Played:
    """The other program starts when the first step of ours is told."""
    begun = asyncio.Event()
    await stage.enrol()
    signing = stage.sign(wallets.make_spend(VAULT, n_inputs=50), on_progress=lambda _note: begun.set())
    async with rigs.running(stage.play(signing, answer=_SIGNED)) as playing:
        await begun.wait()
        await second_program.grab(stage.rig)
        return await playing


# -- locks -----------------------------------------------------------------------------------------------------------


async def _locked(stage: Stage) -> Played:
    stage.rig.device.lock()
    return await stage.play(stage.bridge.xpub(stage.device.id, ACCOUNT))


async def _locked_while_asked(stage: Stage) -> Played:
    async def strike() -> None:
        stage.rig.device.lock()
        makes.settle(stage.rig)

    stage.rig.device.unlock()
    await stage.enrol()
    return await stage.struck(stage.sign(), strike, answer=_SIGNED)


def _unlocked(script: Script = approve_all, **answers: str) -> Player:
    async def play(stage: Stage) -> Played:
        person = Person(stage.rig, **answers)
        played = await stage.play(stage.bridge.unlock(stage.device.id, person), script)
        stage.values |= {"top": person.matrix[6:], "middle": person.matrix[3:6], "bottom": person.matrix[:3]}
        return played

    return play


SITUATIONS: dict[str, Situation] = {
    "found": Situation("plugged in, and asked who it is", _found),
    "key": Situation("the key of a vault's account", _key),
    "keys": Situation("sixteen keys in one conversation", _keys),
    "key-other-network": Situation(
        "a mainnet key of a device for test networks", _key_elsewhere, network=Network.MAINNET
    ),
    "enrol-other-network": Situation(
        "a mainnet vault is enrolled on it", _enrol_elsewhere, _if_it_enrols, network=Network.MAINNET
    ),
    "sign-other-network": Situation("a mainnet payment on it", _sign_elsewhere, network=Network.MAINNET),
    "enrol": Situation("a vault is enrolled", _enrol),
    "enrol-known": Situation("the same vault once more", _enrol_known),
    "enrol-refused": Situation("the person refuses a vault", _enrol_refused, _if_it_enrols),
    "enrol-after-refusal": Situation("and it is asked again at once", _enrol_after_refusal, _if_it_enrols),
    "enrol-same-name": Situation("another vault of the same name", _enrol_same_name, _if_it_enrols),
    "enrol-cancelled": Situation("an enrolment is cancelled", _enrol_cancelled, _if_it_enrols),
    "enrol-unplugged": Situation("unplugged during an enrolment", _enrol_unplugged, _if_it_enrols),
    "address": Situation("a vault's address", _address),
    "address-profile": Situation("a profile's address", _address_profile),
    "address-refused": Situation("the person says that it is another address", _address_refused),
    "address-cancelled": Situation("cancelled while an address is shown", _address_cancelled),
    "address-unknown": Situation(
        "an address of a vault that was not enrolled", _address_unknown, _if_it_enrols
    ),
    "message": Situation("a message", _message("I am here")),
    "message-unicode": Situation("a message that is not ASCII", _message("Grüße")),
    "message-241": Situation("a message of 241 bytes", _message(_LONG)),
    "message-1025": Situation("a message of 1,025 bytes", _message(_TOO_LONG)),
    "message-refused": Situation("refused at each screen of a message", _message_refused),
    "message-cancelled": Situation("cancelled at each screen of a message", _message_cancelled),
    "sign-1": Situation("a payment of 1 input", _spend(1)),
    "sign-10": Situation("of 10 inputs", _spend(10)),
    "sign-50": Situation("of 50 inputs", _spend(50)),
    "sign-513": Situation("of 513 inputs", _spend(513)),
    "sign-two-payments": Situation("two payments", _two_payments_shown),
    "sign-self": Situation("everything to the vault itself", _sign(_self_transfer)),
    "sign-profile": Situation("a payment of a profile", _sign_profile),
    "sign-unknown": Situation("a payment of a vault that was not enrolled", _sign_unknown, _if_it_enrols),
    "sign-large": Situation("100 kB of previous transactions", _sign(_large)),
    **{
        f"op-return-{size}": Situation(f"OP_RETURN of {size} bytes", _op_return(size))
        for size in (20, 31, 32, 75, 76, 80)
    },
    "sign-p2tr-off-curve": Situation("P2TR to a key that is not on the curve", _sign(_off_the_curve)),
    "high-fee": Situation("a fee of half the amount", _spend(1, fee=25_000)),
    "lock-time": Situation("a lock time", _spend(1, locktime=500)),
    "lock-time-final": Situation("a lock time without effect", _sign(_lock_time_without_effect)),
    "sign-refused": Situation("refused at each screen of a payment", _sign_refused),
    "sign-cancelled": Situation("cancelled at each screen", _sign_cancelled),
    "sign-unplugged": Situation("unplugged at each screen", _sign_unplugged),
    "sign-killed": Situation("our worker is killed at each screen", _sign_killed),
    "late-yes-killed": Situation("yes after our worker was killed, and asked again", _answered_late(_kill)),
    "late-yes-cancelled": Situation("yes after a cancel, and asked again", _answered_late(_cancel)),
    "left-open-same": Situation(
        "our worker is killed, no button is pressed, and the same is asked again",
        _left_open(_one_input),
        person=2.0,
    ),
    "left-open-other": Situation("and another payment is asked for", _left_open(_two_payments), person=2.0),
    "sign-unanswered": Situation("no button is pressed", _unanswered, person=0.7),
    "second-before": Situation("another program has used it since", _used_before),
    "second-asked": Situation("another program uses it while the person is asked", _used_while_asked),
    "second-working": Situation("another program uses it while it works", _used_while_working),
    "locked": Situation("locked", _locked, _with_pin),
    "locked-asked": Situation("locked while the person is asked", _locked_while_asked, _with_pin),
    "pin-right": Situation("the right PIN", _unlocked(), _with_typed_pin),
    "pin-wrong": Situation("a wrong PIN", _unlocked(refuse_all, pin="4321"), _with_typed_pin),
    "passphrase": Situation("a passphrase from the host", _unlocked(passphrase="horse"), _with_passphrase),
    "passphrase-empty": Situation("an empty passphrase from the host", _unlocked(), _with_passphrase),
}


async def play(transcript: Transcript, name: str, folder: Path) -> tuple[list[Played], dict[str, str]] | None:
    """Play it on the virtual device of this model: its ends, and the values of the placeholders; None where the model has no such thing."""
    situation = SITUATIONS[name]
    (make,) = (make for make in makes.VIRTUAL if make.family == transcript.family)
    options = situation.options(make)
    if options is None:
        return None
    rig = make.rig(folder, **transcript.options, **options)
    deadlines = rigs.replace_deadlines(person=situation.person)
    async with rigs.bridged(rig, deadlines=deadlines, network=situation.network) as (bridge, [device]):
        stage = Stage(make, rig, bridge, device)
        ends = await situation.play(stage)
    return (ends if isinstance(ends, list) else [ends]), stage.values
