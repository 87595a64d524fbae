"""``rules.toml``, from its text: every key and value checked, each mistake with its line and what to write instead.

::

    [refuse]                      # what is never signed, whatever the vault
    [ask]                         # what is held until you say so
    [vaults.VAULT.refuse]         # the same for one vault, by its verification code, or by an id that was pinned here
    [vaults.VAULT.ask]

and in each: ``above_per_transaction``, ``above_per_day``, ``above_per_week``, ``above_fee_rate``, ``except_to``,
``except_within``, ``any_token``, ``token_not_on_screen``, ``always``.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
# The verification codes of the quorums that were ever pinned under an id, by that id.
Known = Mapping[str, frozenset[str]]
NONE_KNOWN: Known = MappingProxyType({})
# As `multisig.Vault.verification_code` writes it: 160 bits in groups of four.
_CODE = re.compile(r"[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){7}", re.ASCII)


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


@dataclass(frozen=True)
class WrittenRules:
    """A file whose terms were all read. Which vaults its sections mean, the journal has to say."""

    text: str
    file: str
    rules: tuple[Rule, ...] = ()

    def resolved(self, known: Known) -> Rules:
        """The rules, each with the quorums that it bears on.

        Raises:
            RulesInvalid: a section names no vault, with its line.
        """
        try:
            return Rules(tuple(_with_codes(rule, known) for rule in self.rules))
        except _Mistake as mistake:
            raise _invalid(self.text, self.file, mistake) from None


def _with_codes(rule: Rule, known: Known) -> Rule:
    """A code names its quorum, pinned or not yet. An id names what was pinned under it: whatever it names today (S26)."""
    if rule.vault is None:
        return rule
    # Both, for the platform may give one vault an id that is another's code.
    codes = known.get(rule.vault, frozenset()) | _code(rule.vault)
    if not codes:
        raise _Mistake(
            (VAULTS, rule.vault),
            "no vault was ever pinned here under that name: write the vault's verification code, which counts before it is "
            "pinned too, or an id that `signerd vaults` shows as pinned",
        )
    return replace(rule, codes=codes)


def _code(written: str) -> frozenset[str]:
    code = written.upper()
    return frozenset({code}) if _CODE.fullmatch(code) else frozenset()


def read_rules(text: str, network: Network, known: Known = NONE_KNOWN, *, file: str = "rules.toml") -> Rules:
    """The rules that the text sets. Raises RulesInvalid, as ``written_rules`` and ``WrittenRules.resolved``."""
    return written_rules(text, network, file=file).resolved(known)


def written_rules(text: str, network: Network, *, file: str = "rules.toml") -> WrittenRules:
    """What the text says, before any vault is looked up.

    Raises:
        RulesInvalid: with the file, the line and what to write instead. No rule of a wrong file counts.
    """
    try:
        return WrittenRules(text, file, tuple(_read(tomllib.loads(text), network)))
    # The parser descends into nested values, as deep as the interpreter lets it.
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        last = f"(at line {len(text.splitlines())}, the last)"
        said = plain(str(error)).replace("(at end of document)", last)
        raise RulesInvalid(f"{file}: it is not TOML: {said}") from error
    except _Mistake as mistake:
        raise _invalid(text, file, mistake) from None


def _invalid(text: str, file: str, mistake: _Mistake) -> RulesInvalid:
    line = line_of(text, mistake.path)
    where = f"{file}, line {line}" if line else file
    return RulesInvalid(f"{where}: {plain('.'.join(mistake.path))}: {plain(str(mistake))}")


def _read(content: dict[str, Any], network: Network) -> Iterator[Rule]:
    _only(content, (), (*Action, VAULTS))
    yield from _actions(content, (), None, network)
    for vault, section in _table(content.get(VAULTS, {}), (VAULTS,)).items():
        path = (VAULTS, vault)
        _only(_table(section, path), path, tuple(Action))
        yield from _actions(section, path, vault, network)


def _actions(section: dict[str, Any], path: Path, vault: str | None, network: Network) -> Iterator[Rule]:
    for action in Action:
        here = (*path, action.value)
        settings = _table(section.get(action.value, {}), here)
        _only(settings, here, tuple(KEYS))
        for key, value in settings.items():
            condition = _condition(key, value, (*here, key), network)
            if condition is not None:
                yield Rule(action, condition, vault)


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
