"""Vaults whose cosigners are virtual devices' seeds, coins for them, and spends to sign."""

from collections.abc import Sequence
from functools import cache

from device_simulators.panel import Happening, Panel, PanelEvent, Prompt
from device_simulators.seed import Seed
from multisig import (
    ChangeTo,
    CoinToSpend,
    Network,
    OutPoint,
    Policy,
    Psbt,
    Sats,
    Transaction,
    TxIn,
    TxOut,
    Vault,
    build_psbt,
)
from tests.support.wallets import Holder, make_vault

NETWORK = Network.REGTEST
COIN = Sats(1_000_000)
PAYMENT = Sats(600_000)
CHANGE_AMOUNT = Sats(395_000)
SEED_WORDS = "abandon " * 11 + "about"
"""Cosigner 0's words: 16 bytes of zeros."""
RECIPIENT = bytes.fromhex("0014") + bytes(range(20))


@cache
def seed(number: int = 0) -> Seed:
    """Cosigner `number`'s seed."""
    return Seed.from_entropy(bytes([number]) * 16)


def holder(number: int = 0, network: Network = NETWORK) -> Holder:
    return Holder(seed(number), network)


def vault(threshold: int = 2, cosigners: int = 3, network: Network = NETWORK) -> Vault:
    """Of the seeds 0, 1, 2, …"""
    return make_vault([holder(number, network) for number in range(cosigners)], threshold)


def coin(policy: Policy, index: int = 0, amount: Sats = COIN) -> CoinToSpend:
    """A coin at receive address `index`: the second output of a transaction of its own."""
    previous = Transaction(
        version=2,
        inputs=(TxIn(OutPoint(bytes([index + 1]).hex() * 32, index), 0xFFFFFFFE, b"\x51" * 3),),
        outputs=(TxOut(Sats(5_000), RECIPIENT), TxOut(amount, policy.script_pubkey(0, index))),
        locktime=7,
    )
    return CoinToSpend(OutPoint(previous.txid, 1), amount, 0, index, previous)


def spend(
    policy: Policy, *, inputs: int = 1, outputs: Sequence[TxOut | ChangeTo] | None = None, locktime: int = 0
) -> Psbt:
    """Spends `inputs` coins to the outputs; by default a payment, and change that leaves a fee of 5,000 sats
    for each input.
    """
    coins = [coin(policy, index) for index in range(inputs)]
    if outputs is None:
        change = Sats(CHANGE_AMOUNT + (inputs - 1) * (COIN - 5_000))
        outputs = [TxOut(PAYMENT, RECIPIENT), ChangeTo(change, 1, 3)]
    return build_psbt(policy, coins, outputs, locktime)


class Record:
    """The prompts of a panel, in order."""

    def __init__(self, panel: Panel) -> None:
        self.events: list[PanelEvent] = []
        panel.watch(self.events.append)

    @property
    def prompts(self) -> list[Prompt]:
        return [event.prompt for event in self.events if event.happening is Happening.SHOWN]

    @property
    def kinds(self) -> list[str]:
        return [prompt.kind for prompt in self.prompts]
