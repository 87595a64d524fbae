"""The rules file: ``rules.toml`` beside the configuration, or where the configuration says. Read once, at the start."""

import os
from pathlib import Path

import platformdirs

from multisig import Network
from signerd.account.config import MAX_CONFIG_BYTES, NAME, Config
from signerd.core.rules.reading import WrittenRules, written_rules
from signerd.errors import RulesInvalid

FILE = "rules.toml"


def find_rules(config: Config, state: Path) -> Path | None:
    """The file to read; None where the configuration names none and none is in either usual place.

    One that the configuration names is returned even where it is not there: its absence must not mean "no rules".
    """
    if config.rules is not None:
        return config.rules
    places = (state / FILE, platformdirs.user_config_path(NAME) / FILE)
    # A link that leads nowhere is a mistake to report, not an absence.
    return next((place for place in places if os.path.lexists(place)), None)


def load_rules(path: Path, network: Network) -> WrittenRules:
    """Raises RulesInvalid: it cannot be read, or with the line and what to write instead."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise RulesInvalid(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_CONFIG_BYTES:
        raise RulesInvalid(f"{path} is too long for rules")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise RulesInvalid(f"{path} is not text: {error}") from error
    return written_rules(text, network, file=str(path))


def rules_of(config: Config, state: Path) -> WrittenRules:
    """The rules that a daemon of this configuration starts with, before its journal is opened. Raises RulesInvalid."""
    path = find_rules(config, state)
    return WrittenRules("", FILE) if path is None else load_rules(path, config.network)
