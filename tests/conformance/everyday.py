"""How the situations of everyday use are played: reading, enrolment, addresses, messages, transactions."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from device_simulators.panel import Script, approve_all, refuse_all
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    Network,
    Policy,
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

MAINNET_VAULT = rigs.make_vault(network=Network.MAINNET)
OTHER_QUORUM = Vault(NETWORK, 1, VAULT.cosigners)
# Longer than a Coldcard takes; and than a Trezor takes.
LONG, TOO_LONG = "a" * 241, "a" * 1025

Operation = Callable[[Stage], Awaitable[object]]
Strike = Callable[[Stage], Awaitable[object]]


# -- how it is done ------------------------------------------------------------------------------------------


def doing(
    operation: Operation,
    script: Script = approve_all,
    *,
    enrolled: bool = False,
    strike: Strike | None = None,
    answer: str = "answered",
    **values: str,
) -> Player:
    """Once, with this person at the buttons; `strike` while its first question waits. `enrolled`: the device
    knows the vault. `values`: more of the placeholders.
    """

    async def play(stage: Stage) -> Played:
        stage.values |= values
        if enrolled:
            await stage.enrol()
        if strike is not None:
            return await stage.struck(operation(stage), partial(strike, stage), answer=answer)
        return await stage.play(operation(stage), script, answer=answer)

    return play


def at_each_screen(
    operation: Operation, strike: Strike, recover: Strike | None = None, *, enrolled: bool = False
) -> Player:
    async def play(stage: Stage) -> list[Played]:
        if enrolled:
            await stage.enrol()
        again = None if recover is None else partial(recover, stage)
        return await stage.at_each_screen(partial(operation, stage), partial(strike, stage), again)

    return play


# -- what is done --------------------------------------------------------------------------------------------


def found(stage: Stage) -> Awaitable[object]:
    return stage.bridge.refresh()


def key(network: Network = NETWORK) -> Operation:
    return lambda stage: stage.bridge.xpub(stage.device.id, multisig_account_path(network))


def keys(stage: Stage) -> Awaitable[object]:
    paths = [
        make(NETWORK, number) for number in range(8) for make in (multisig_account_path, profile_account_path)
    ]
    return stage.bridge.xpubs(stage.device.id, paths)


def enrolling(vault: Vault = VAULT) -> Operation:
    return lambda stage: stage.bridge.enrol(stage.device.id, vault, NAME)


async def enrol_after_refusal(stage: Stage) -> Played:
    await doing(enrolling(), refuse_all)(stage)
    return await doing(enrolling())(stage)


def showing(stage: Stage) -> Awaitable[str]:
    return stage.bridge.show_address(stage.device.id, VAULT, RECEIVE, 0)


def showing_profile(stage: Stage) -> Awaitable[str]:
    profile = stage.rig.profile
    stage.values["address"] = profile.address(RECEIVE, 3)
    return stage.bridge.show_address(stage.device.id, profile, RECEIVE, 3)


def proving(text: str = "I am here") -> Operation:
    return lambda stage: stage.bridge.sign_message(stage.device.id, text, ACCOUNT / "0/0")


def message(text: str) -> Player:
    return doing(proving(text), answer=SIGNED, text=text)


def signing(policy: Policy = VAULT) -> Operation:
    return lambda stage: stage.sign(policy=policy)


def signing_profile(stage: Stage) -> Awaitable[Psbt]:
    return stage.sign(policy=stage.rig.profile)


def signing_of(make_psbt: Callable[[], Psbt], **values: str) -> Player:
    return doing(lambda stage: stage.sign(make_psbt()), enrolled=True, answer=SIGNED, **values)


def spend(inputs: int, **how: int) -> Player:
    return signing_of(lambda: payments.make_spend(VAULT, n_inputs=inputs, **how))


# -- transactions --------------------------------------------------------------------------------------------


def _pay_to(*outputs: TxOut | ChangeTo) -> Psbt:
    """One coin of 100,000 sat into these outputs."""
    return build_psbt(VAULT, [payments.fund(VAULT, 100_000)], list(outputs), 0)


def with_op_return(data: bytes) -> Psbt:
    note = TxOut(sats(0), op_return_script(data))
    return _pay_to(payments.pay(50_000), note, ChangeTo(sats(49_000), CHANGE, 7))


def op_return(size: int) -> Player:
    data = bytes(range(128, 128 + size))
    return signing_of(lambda: with_op_return(data), data=data.hex(), DATA=data.hex().upper())


def self_transfer() -> Psbt:
    return _pay_to(ChangeTo(sats(99_000), CHANGE, 7))


def two_payments() -> Psbt:
    return _pay_to(payments.pay(50_000), payments.pay(20_000, "baker"), ChangeTo(sats(29_000), CHANGE, 7))


def two_payments_shown() -> Player:
    return signing_of(two_payments, payee2=encode_address(payments.foreign_script("baker"), NETWORK))


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
