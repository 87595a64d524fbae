"""The configuration and the rules in words, for whoever asks what this machine was told to do."""

from dataclasses import dataclass
from pathlib import Path

from signerd.account.config import Config
from signerd.account.session import Account
from signerd.core.checks.table import CHECKS, HOLD
from signerd.core.rules.words import rule_words
from signerd.core.text import plain
from signerd.journal import Journal
from signerd.shapes import LoweredView, SettingsView


@dataclass(frozen=True)
class Settings:
    """Read, never written: the configuration is changed in its file, and taken up at the next start. What proposals are judged by is the journal's."""

    state: Path
    config: Config
    account: Account
    journal: Journal

    async def shown(self) -> SettingsView:
        config, limits = self.config, self.journal.limits
        return SettingsView(
            network=str(self.journal.network),
            label=plain(config.label),
            state_folder=str(self.state),
            platform_url=config.platform.url,
            own_authority=config.platform.ca_file is not None,
            workspaces=config.platform.workspaces,
            secrets=self.account.mode,
            usb=config.devices.usb,
            endpoints=config.devices.endpoints,
            max_fee_sats=int(limits.max_fee),
            max_fee_rate=str(limits.max_fee_rate.sat_per_vb),
            max_fee_percent=limits.max_fee_percent,
            warn_fee_percent=limits.warn_fee_percent,
            lowered=tuple(_lowered(name) for name in sorted(self.journal.lowered)),
            rules=tuple(plain(rule_words(rule, self.journal.network)) for rule in self.journal.rules.rules),
        )


def _lowered(name: str) -> LoweredView:
    check = CHECKS[name]
    return LoweredView(name=name, guards=check.sentence, becomes="asks" if check.lowered == HOLD else "warns")
