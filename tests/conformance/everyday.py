"""How the situations of everyday use are played: reading, enrolment, addresses, messages, transactions."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from device_simulators.panel import refuse_all
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    Network,
    Psbt,
    TxOut,
    Vault,
    build_psbt,
    encode_address,
    multisig_account_path,
    op_return_script,
    p2tr,
    profile_account_path,
    sats,
)
from tests.conformance import payments, rigs
from tests.conformance.makes import NAME, VAULT
from tests.conformance.rigs import ACCOUNT, NETWORK
from tests.conformance.stage import SIGNED, Played, Player, Stage

_MAINNET_VAULT = rigs.make_vault(network=Network.MAINNET)
_MESSAGE_PATH = ACCOUNT / "0/0"
# Longer than a Coldcard takes; and than a Trezor takes.
LONG, TOO_LONG = "a" * 241, "a" * 1025


# -- reading -------------------------------------------------------------------------------------------------


async def found(stage: Stage) -> Played:
    return await stage.play(stage.bridge.refresh())


async def key(stage: Stage) -> Played:
    return await stage.play(stage.bridge.xpub(stage.device.id, ACCOUNT))


async def key_elsewhere(stage: Stage) -> Played:
    path = multisig_account_path(Network.MAINNET)
    return await stage.play(stage.bridge.xpub(stage.device.id, path))


async def enrol_elsewhere(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage, _MAINNET_VAULT))


async def sign_elsewhere(stage: Stage) -> Played:
    return await stage.play(stage.sign(policy=_MAINNET_VAULT), answer=SIGNED)


async def keys(stage: Stage) -> Played:
    paths = [
        make(NETWORK, number) for number in range(8) for make in (multisig_account_path, profile_account_path)
    ]
    return await stage.play(stage.bridge.xpubs(stage.device.id, paths))


# -- enrolment -----------------------------------------------------------------------------------------------


def _enrolling(stage: Stage, vault: Vault = VAULT) -> Awaitable[None]:
    return stage.bridge.enrol(stage.device.id, vault, NAME)


async def enrol_vault(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage))


async def enrol_known(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_enrolling(stage))


async def enrol_refused(stage: Stage) -> Played:
    return await stage.play(_enrolling(stage), refuse_all)


async def enrol_after_refusal(stage: Stage) -> Played:
    await stage.play(_enrolling(stage), refuse_all)
    return await stage.play(_enrolling(stage))


async def enrol_same_name(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_enrolling(stage, Vault(NETWORK, 1, VAULT.cosigners)))


async def enrol_cancelled(stage: Stage) -> Played:
    return await stage.struck(_enrolling(stage), stage.cancel)


async def enrol_unplugged(stage: Stage) -> Played:
    return await stage.struck(_enrolling(stage), stage.rig.unplug)


# -- addresses -----------------------------------------------------------------------------------------------


def _showing(stage: Stage) -> Awaitable[str]:
    return stage.bridge.show_address(stage.device.id, VAULT, RECEIVE, 0)


async def address(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_showing(stage))


async def address_refused(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.play(_showing(stage), refuse_all)


async def address_cancelled(stage: Stage) -> Played:
    await stage.enrol()
    return await stage.struck(_showing(stage), stage.cancel)


async def address_unknown(stage: Stage) -> Played:
    return await stage.play(_showing(stage))


async def address_profile(stage: Stage) -> Played:
    profile = stage.rig.profile
    stage.values["address"] = profile.address(RECEIVE, 3)
    return await stage.play(stage.bridge.show_address(stage.device.id, profile, RECEIVE, 3))


# -- messages ------------------------------------------------------------------------------------------------


def message(text: str) -> Player:
    async def play(stage: Stage) -> Played:
        stage.values["text"] = text
        return await stage.play(_proving(stage, text), answer=SIGNED)

    return play


def _proving(stage: Stage, text: str = "I am here") -> Awaitable[bytes]:
    return stage.bridge.sign_message(stage.device.id, text, _MESSAGE_PATH)


async def message_refused(stage: Stage) -> list[Played]:
    return await stage.at_each_screen(lambda: _proving(stage), stage.press_no)


async def message_cancelled(stage: Stage) -> list[Played]:
    return await stage.at_each_screen(lambda: _proving(stage), stage.cancel)


# -- transactions --------------------------------------------------------------------------------------------


def signing_of(make_psbt: Callable[[], Psbt]) -> Player:
    async def play(stage: Stage) -> Played:
        await stage.enrol()
        return await stage.play(stage.sign(make_psbt()), answer=SIGNED)

    return play


def spend(inputs: int, **how: int) -> Player:
    return signing_of(lambda: payments.make_spend(VAULT, n_inputs=inputs, **how))


def _pay_to(*outputs: TxOut | ChangeTo) -> Psbt:
    """One coin of 100,000 sat into these outputs."""
    return build_psbt(VAULT, [payments.fund(VAULT, 100_000)], list(outputs), 0)


def op_return(size: int) -> Player:
    data = bytes(range(128, 128 + size))
    note, change = TxOut(sats(0), op_return_script(data)), ChangeTo(sats(49_000), CHANGE, 7)

    async def play(stage: Stage) -> Played:
        stage.values |= {"data": data.hex(), "DATA": data.hex().upper()}
        return await signing_of(lambda: _pay_to(payments.pay(50_000), note, change))(stage)

    return play


def self_transfer() -> Psbt:
    return _pay_to(ChangeTo(sats(99_000), CHANGE, 7))


def two_payments() -> Psbt:
    return _pay_to(payments.pay(50_000), payments.pay(20_000, "baker"), ChangeTo(sats(29_000), CHANGE, 7))


def lock_time_without_effect() -> Psbt:
    psbt = payments.make_spend(VAULT, n_inputs=1, locktime=500)
    return payments.with_inputs(psbt, *(replace(item, sequence=0xFFFFFFFF) for item in psbt.inputs))


def off_the_curve() -> Psbt:
    """No point of the curve has x = 5 (BIP-340's lift_x fails)."""
    output = TxOut(sats(50_000), p2tr((5).to_bytes(32)))
    return _pay_to(output, ChangeTo(sats(49_000), CHANGE, 7))


def large() -> Psbt:
    """About 100 kB, nearly all of it previous transactions."""
    coins = [payments.fund(VAULT, 100_000, index=index, outputs=300) for index in range(10)]
    return build_psbt(VAULT, coins, [payments.pay(50_000), ChangeTo(sats(949_000), CHANGE, 7)], 0)


async def two_payments_shown(stage: Stage) -> Played:
    stage.values["payee2"] = encode_address(payments.foreign_script("baker"), NETWORK)
    return await signing_of(two_payments)(stage)


async def sign_profile(stage: Stage) -> Played:
    return await stage.play(stage.sign(policy=stage.rig.profile), answer=SIGNED)


async def sign_unknown(stage: Stage) -> Played:
    return await stage.play(stage.sign(), answer=SIGNED)
