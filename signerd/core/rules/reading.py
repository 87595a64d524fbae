"""Parsing ``rules.toml``: each mistake is reported with its line and what to write instead.

::

    [refuse]                      # never signed, whatever the vault
    [ask]                         # held until you acknowledge it
    [vaults.VAULT.refuse]         # the same for one vault, by its code or by an id pinned here
    [vaults.VAULT.ask]

and in each: ``above_per_transaction``, ``above_per_day``, ``above_per_week``, ``above_fee_rate``,
``except_to``, ``except_within``, ``any_token``, ``token_not_on_screen``, ``always``.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from multisig import FeeRate, Fingerprint, MultisigError, Network, Sats, decode_address, parse_btc, sats
from signerd.core.rules.values import (
    WEEKDAYS,
    AboveFeeRate,
    AbovePerTransaction,
    AboveWithin,
    Action,
    Always,
    Condition,
    ExceptTo,
    ExceptWithin,
    Hours,
    OffScreen,
    OfToken,
    Period,
    Rule,
    Rules,
    minute_of_day,
)
from signerd.core.text import line_of, plain
from signerd.errors import RulesInvalid

VAULTS = "vaults"
Path = tuple[str, ...]
# The verification codes of the quorums that were ever pinned under an id, by that id.
Known = Mapping[str, frozenset[str]]
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


# The condition for each key's value; None for no rule. Raises ValueError with what to write instead.
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
    codes = known.get(rule.vault, frozenset()) | _code(rule.vault)
    if not codes:
        raise _Mistake(
            (VAULTS, rule.vault),
            "no vault was ever pinned here under that name: write the vault's verification code, which "
            "counts before it is "
            "pinned too, or an id that `signerd vaults` shows as pinned",
        )
    return replace(rule, codes=codes)


def _code(written: str) -> frozenset[str]:
    code = written.upper()
    return frozenset({code}) if _CODE.fullmatch(code) else frozenset()


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


# As many digits as 21 million bitcoin has: int() refuses thousands of digits with a message of its own.
_SATS = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_RATE = re.compile(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,3})?", re.ASCII)
RATE_UNIT = "sat/vB"
HOURS_KEYS = ("zone", "days", "from", "to")


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


def fee_rate(value: Any) -> FeeRate:
    """``"20 sat/vB"``, with at most three decimal places."""
    advice = 'write a fee rate with its unit: "20 sat/vB" or "2.5 sat/vB"'
    number, _space, unit = _text(value, advice).partition(" ")
    if unit != RATE_UNIT or not _RATE.fullmatch(number):
        raise ValueError(advice)
    try:
        return FeeRate.from_sat_per_vb(Decimal(number))
    except MultisigError as error:
        raise ValueError(f"{_without_period(error)}: {advice}") from None


def addresses(value: Any, network: Network) -> frozenset[bytes]:
    """The scripts of a list of addresses of this network."""
    advice = f'write a list of addresses of {network}: ["address", "address"]'
    if not isinstance(value, list) or not value:
        raise ValueError(f"{advice}; to let nobody be paid write always = true")
    return frozenset(_script(item, network, advice) for item in value)


def _script(value: Any, network: Network, advice: str) -> bytes:
    text = _text(value, advice)
    try:
        return decode_address(text, network)
    except MultisigError as error:
        raise ValueError(f'"{text}" is not an address of {network}: {_without_period(error)}') from None


def hours(value: Any) -> Hours:
    """A table of ``zone``, ``days``, ``from``, ``to``."""
    advice = 'write { zone = "Europe/Berlin", days = ["mon", "tue"], from = "08:00", to = "18:00" }'
    if not isinstance(value, dict) or set(value) != set(HOURS_KEYS):
        raise ValueError(f"it takes {', '.join(HOURS_KEYS)} and nothing else: {advice}")
    opens = minute_of_day(_text(value["from"], advice))
    closes = minute_of_day(_text(value["to"], advice))
    if not opens < closes:
        raise ValueError('"from" must come before "to", on one day; a night ends at "24:00"')
    return Hours(_zone(value["zone"]), _weekdays(value["days"]), opens, closes)


def _zone(value: Any) -> ZoneInfo:
    text = _text(value, 'write a time zone of the IANA list, as "Europe/Berlin" or "UTC"')
    try:
        return ZoneInfo(text)
    # ZoneInfo raises different errors for unknown and malformed names.
    except (ValueError, OSError, KeyError):
        raise ValueError(
            f'"{text}" is not a time zone that this machine knows: '
            'write one of the IANA list, as "Europe/Berlin" or "UTC"'
        ) from None


def _weekdays(value: Any) -> frozenset[int]:
    known: Sequence[Any] = WEEKDAYS
    if not isinstance(value, list) or not value or any(day not in known for day in value):
        raise ValueError(f"write the weekdays as a list of {', '.join(WEEKDAYS)}")
    return frozenset(known.index(day) for day in value)


def fingerprints(value: list[Any]) -> frozenset[Fingerprint]:
    """Cosigners, by the fingerprints of their master keys."""
    advice = 'write true, or a list of fingerprints of cosigners whose devices show it all: ["73c5da0a"]'
    if not value:
        raise ValueError(advice)
    try:
        return frozenset(Fingerprint.from_hex(_text(item, advice)) for item in value)
    except MultisigError as error:
        raise ValueError(f"{_without_period(error)}: {advice}") from None


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false, without quotes")  # noqa: TRY004 - one kind of error for all terms
    return value


def _without_period(error: Exception) -> str:
    return str(error).rstrip(".")


def _text(value: Any, advice: str) -> str:
    if not isinstance(value, str):
        raise ValueError(advice)  # noqa: TRY004 - one kind of error for all terms
    return value
