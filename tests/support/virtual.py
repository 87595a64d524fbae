"""Vaults whose cosigners are virtual devices' seeds, and what a device's panel shows."""

from functools import cache

from device_simulators.panel import Happening, Panel, PanelEvent, Prompt
from device_simulators.seed import Seed
from multisig import Network, Vault
from tests.support.wallets import Holder, make_vault

NETWORK = Network.REGTEST
SEED_WORDS = "abandon " * 11 + "about"
"""Cosigner 0's words: 16 bytes of zeros."""


@cache
def seed(number: int = 0) -> Seed:
    """Cosigner `number`'s seed."""
    return Seed.from_entropy(bytes([number]) * 16)


def holder(number: int = 0, network: Network = NETWORK) -> Holder:
    return Holder(seed(number), network)


def vault(threshold: int = 2, cosigners: int = 3, network: Network = NETWORK) -> Vault:
    """Of the seeds 0, 1, 2, …"""
    return make_vault([holder(number, network) for number in range(cosigners)], threshold)


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
