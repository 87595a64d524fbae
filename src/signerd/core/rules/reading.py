"""``rules.toml``, from its text: every key and value checked, each mistake with its line and what to write instead.

::

    [refuse]                      # what is never signed, whatever the vault
    [ask]                         # what is held until you say so
    [vaults.VAULT-ID.refuse]      # the same for one vault
    [vaults.VAULT-ID.ask]

and in each: ``above_per_transaction``, ``above_per_day``, ``above_per_week``, ``above_fee_rate``, ``except_to``,
``except_within``, ``any_token``, ``token_not_on_screen``, ``always``.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from multisig import Network, Sats
from signerd.core.rules.terms import addresses, amount_sats, fee_rate, fingerprints, hours, truth
from signerd.core.rules.values import (
    AboveFeeRate,
    AbovePerTransaction,
    AboveWithin,
    Action,
    Always,
    Condition,
    ExceptTo,
    ExceptWithin,
    OffScreen,
    OfToken,
    Period,
    Rule,
    Rules,
)
from signerd.core.text import plain
from signerd.core.toml_lines import line_of
from signerd.errors import RulesInvalid

VAULTS = "vaults"
Path = tuple[str, ...]


def _sats(make: Callable[[Sats], Condition]) -> Callable[[Any, Network], Condition]:
    return lambda value, _network: make(amount_sats(value))


def _token(value: Any, _network: Network) -> Condition | None:
    return OfToken() if truth(value) else None


def _off_screen(value: Any, _network: Network) -> Condition | None:
    if isinstance(value, list):
        return OffScreen(fingerprints(value))
    return OffScreen() if truth(value) else None


def _always(value: Any, _network: Network) -> Condition | None:
    return Always() if truth(value) else None


# What each key makes of its value; None where it makes no rule. Raises ValueError with what to write instead.
KEYS: Mapping[str, Callable[[Any, Network], Condition | None]] = MappingProxyType(
    {
        "above_per_transaction": _sats(AbovePerTransaction),
        "above_per_day": _sats(lambda limit: AboveWithin(Period.DAY, limit)),
        "above_per_week": _sats(lambda limit: AboveWithin(Period.WEEK, limit)),
        "above_fee_rate": lambda value, _network: AboveFeeRate(fee_rate(value)),
        "except_to": lambda value, network: ExceptTo(addresses(value, network)),
        "except_within": lambda value, _network: ExceptWithin(hours(value)),
        "any_token": _token,
        "token_not_on_screen": _off_screen,
        "always": _always,
    }
)


class _Mistake(Exception):
    """Where, and what to write instead."""

    def __init__(self, path: Path, sentence: str) -> None:
        super().__init__(sentence)
        self.path = path


def read_rules(text: str, network: Network, *, file: str = "rules.toml") -> Rules:
    """The rules that the text sets.

    Raises:
        RulesInvalid: with the file, the line and what to write instead. No rule of a wrong file counts.
    """
    try:
        return Rules(tuple(_read(tomllib.loads(text), network)))
    # The parser descends into nested values, as deep as the interpreter lets it.
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        last = f"(at line {len(text.splitlines())}, the last)"
        said = plain(str(error)).replace("(at end of document)", last)
        raise RulesInvalid(f"{file}: it is not TOML: {said}") from error
    except _Mistake as mistake:
        line = line_of(text, mistake.path)
        where = f"{file}, line {line}" if line else file
        raise RulesInvalid(f"{where}: {plain('.'.join(mistake.path))}: {plain(str(mistake))}") from None


def _read(content: dict[str, Any], network: Network) -> Iterator[Rule]:
    _only(content, (), (*Action, VAULTS))
    yield from _actions(content, (), None, network)
    for vault_id, section in _table(content.get(VAULTS, {}), (VAULTS,)).items():
        path = (VAULTS, vault_id)
        _only(_table(section, path), path, tuple(Action))
        yield from _actions(section, path, vault_id, network)


def _actions(section: dict[str, Any], path: Path, vault_id: str | None, network: Network) -> Iterator[Rule]:
    for action in Action:
        here = (*path, action.value)
        settings = _table(section.get(action.value, {}), here)
        _only(settings, here, tuple(KEYS))
        for key, value in settings.items():
            condition = _condition(key, value, (*here, key), network)
            if condition is not None:
                yield Rule(action, condition, vault_id)


def _condition(key: str, value: Any, path: Path, network: Network) -> Condition | None:
    try:
        return KEYS[key](value, network)
    except ValueError as error:
        raise _Mistake(path, str(error)) from None


def _table(value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Mistake(path, f"it is a section: write [{'.'.join(path)}] on a line of its own")
    return value


def _only(section: dict[str, Any], path: Path, known: tuple[str, ...]) -> None:
    for key in section:
        if key not in known:
            raise _Mistake((*path, key), f"there is no such key here: write one of {', '.join(known)}")
