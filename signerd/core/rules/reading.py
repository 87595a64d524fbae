"""Parsing ``rules.toml``: each mistake is reported with its line and what to write instead.

::

    [refuse]                      # never signed, whatever the vault
    [ask]                         # held until you acknowledge it
    [vaults.VAULT.refuse]         # the same for one vault, by its code or by an id pinned here
    [vaults.VAULT.ask]

and in each: ``above_per_transaction``, ``above_per_day``, ``except_to``, ``any_token``, ``always``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from custody.common.text import plain
from multisig import MultisigError, Network, Sats, decode_address, parse_btc, sats
from signerd.core.rules.values import Action, Condition, Rule, RuleKind, Rules
from signerd.core.text import line_of
from signerd.errors import RulesInvalid

VAULTS = "vaults"
Path = tuple[str, ...]
# The verification codes of the quorums that were ever pinned under an id, by that id.
Known = Mapping[str, frozenset[str]]
# As `multisig.Vault.verification_code` writes it: 160 bits in groups of four.
_CODE = re.compile(r"[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){7}", re.ASCII)


KEYS = {
    "above_per_transaction": RuleKind.PER_TRANSACTION,
    "above_per_day": RuleKind.PER_DAY,
    "except_to": RuleKind.ADDRESS,
    "any_token": RuleKind.TOKEN,
    "always": RuleKind.ALWAYS,
}


class _Mistake(Exception):
    """A mistake in the file: its key, and what to write instead."""

    def __init__(self, path: Path, sentence: str) -> None:
        super().__init__(sentence)
        self.path = path


@dataclass(frozen=True)
class WrittenRules:
    """A parsed file. The journal knows which vaults its sections name."""

    text: str
    file: str
    rules: tuple[Rule, ...] = ()

    def resolved(self, known: Known) -> Rules:
        """The rules, each with the quorums that it applies to.

        Raises:
            RulesInvalid: a section names no vault, with its line.
        """
        try:
            return Rules(tuple(_with_codes(rule, known) for rule in self.rules))
        except _Mistake as mistake:
            raise _invalid(self.text, self.file, mistake) from None


def _with_codes(rule: Rule, known: Known) -> Rule:
    """A code names its quorum, pinned or not. An id names every quorum that was ever pinned under it
    (S26).
    """
    if rule.vault is None:
        return rule
    # Both: the platform could give a vault an id that equals another's code.
    code = rule.vault.upper()
    codes = known.get(rule.vault, frozenset()) | ({code} if _CODE.fullmatch(code) else set())
    if not codes:
        raise _Mistake(
            (VAULTS, rule.vault),
            "no vault was ever pinned here under that id, and a name does not count: write the vault's "
            "verification code, which counts before it is pinned too, or an id that `signerd vaults` shows "
            "as pinned",
        )
    return replace(rule, codes=codes)


def written_rules(text: str, network: Network, *, file: str = "rules.toml") -> WrittenRules:
    """Parse the text, before vaults are looked up.

    Raises:
        RulesInvalid: with the file, the line and what to write instead. No rule of a wrong file counts.
    """
    try:
        return WrittenRules(text, file, tuple(_read(tomllib.loads(text), network)))
    # RecursionError: the parser is recursive.
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        last = f"(at line {len(text.splitlines())}, the last)"
        said = plain(str(error)).replace("(at end of document)", last)
        raise RulesInvalid(f"the file {file} is not TOML: {said}") from error
    except _Mistake as mistake:
        raise _invalid(text, file, mistake) from None


def _invalid(text: str, file: str, mistake: _Mistake) -> RulesInvalid:
    line = line_of(text, mistake.path)
    where = f"the file {file}, line {line}" if line else f"the file {file}"
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
            condition = _condition(KEYS[key], value, (*here, key), network)
            if condition is not None:
                yield Rule(action, condition, vault)


def _condition(kind: RuleKind, value: Any, path: Path, network: Network) -> Condition | None:
    """None for no rule: the value of its key is false."""
    try:
        match kind:
            case RuleKind.PER_TRANSACTION | RuleKind.PER_DAY:
                return Condition(kind, limit=amount_sats(value))
            case RuleKind.ADDRESS:
                return Condition(kind, scripts=addresses(value, network))
            case _ if not isinstance(value, bool):
                raise ValueError("write true or false, without quotes")  # noqa: TRY301 - as for other terms
            case _:
                return Condition(kind) if value else None
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


# As many digits as 21 million bitcoin has: int() refuses thousands of digits with a message of its own.
_SATS = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


def amount_sats(value: Any) -> Sats:
    """``"0.5 BTC"`` or ``"50000 sat"``: the unit is required: a bare number would be ambiguous."""
    advice = 'write an amount with its unit: "0.5 BTC" or "50000 sat"'
    number, _space, unit = _text(value, advice).partition(" ")
    try:
        match unit:
            case "BTC":
                return parse_btc(number)
            case "sat" if _SATS.fullmatch(number):
                return sats(int(number))
    except MultisigError as error:
        raise ValueError(f"{_without_period(error)}: {advice}") from None
    raise ValueError(advice)


def addresses(value: Any, network: Network) -> frozenset[bytes]:
    """The scripts of a list of addresses of this network."""
    advice = f'write a list of addresses of {network}: ["address", "address"]'
    if not isinstance(value, list) or not value:
        raise ValueError(f"{advice}; to let nobody be paid write always = true")
    scripts = set()
    for item in value:
        text = _text(item, advice)
        try:
            scripts.add(decode_address(text, network))
        except MultisigError as error:
            why = _without_period(error)
            raise ValueError(f'"{text}" is not an address of {network}: {why}') from None
    return frozenset(scripts)


def _without_period(error: Exception) -> str:
    return str(error).rstrip(".")


def _text(value: Any, advice: str) -> str:
    if not isinstance(value, str):
        raise ValueError(advice)  # noqa: TRY004 - one kind of error for all terms
    return value
