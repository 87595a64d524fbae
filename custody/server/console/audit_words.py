"""Rows of the audit log as sentences that a person reads, made of the facts that each row stores. What is
stored is shown beside them. A sentence that begins with a small letter follows the name of who acted.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup

from custody.common.change_words import PERMISSION_WORDS, TITLES
from custody.common.limit_words import bounds
from custody.common.text import SATS_PER_BTC, SHORT_ID, amount, plain
from custody.schemas.calls import CALLS
from custody.schemas.logs import AuditLogEntry
from custody.server import nouns  # noqa: F401 - their events
from custody.server.rules.audit import Event, Facts, chosen, event_of, kind_of

_TRIED: Final = {call.path: call.second_person or call.attempt for call in CALLS}
_PROGRAM_NAME: Final = re.compile(r"(\S+), service account [0-9]+ \((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class RowWords:
    """A row in words. ``is_known``: the sentence is of its event; else it is what the row describes."""

    sentence: Markup
    is_known: bool


def row_words(
    entry: AuditLogEntry,
    facts: Facts,
    names: Mapping[str, str],
    recipients: Mapping[str, Markup] = MappingProxyType({}),
) -> RowWords:
    """``names``: by kind and id (`LogsPage`). ``recipients``: whom a payment pays, by its id. Markup escapes
    each part.
    """
    who, event = who_of(entry, names), event_of(entry.action, facts)
    if event is not None and event.says:
        try:
            return RowWords(_sentence(event, who, facts, names, recipients), is_known=True)
        except (TypeError, ValueError, LookupError, ArithmeticError):
            # Facts of another form were altered: `custody audit verify` names the row.
            pass
    stored = Markup("{}, {}: {}").format(who, _of_code(entry.action), plain(entry.description))
    return RowWords(stored, is_known=False)


def _sentence(
    event: Event, who: Markup, facts: Facts, names: Mapping[str, str], recipients: Mapping[str, Markup]
) -> Markup:
    paid = recipients.get(str(facts.get("proposal")))
    sentence = chosen(event.says, {**facts, "paid": paid})
    parts = {name: _words(kind_of(name), fact, names) for name, fact in facts.items()}
    said = Markup(sentence).format(**parts, paid=paid)  # noqa: S704 - the events' own words
    return said if sentence[0].isupper() else Markup("{} {}").format(who, said)


def recipient_words(address: str, name: str | None, others: int) -> Markup:
    """A name stands out, so that none of it reads as the sentence's own words. An entry of the address book
    may be renamed at any time: the address is shown with it.
    """
    short = Markup("{}…{}").format(plain(address[:8]), plain(address[-6:]))
    first = Markup("{}, {}").format(_strong(name), short) if name else short
    more = f" and {others} {'other' if others == 1 else 'others'}" if others else ""
    return first + more


def who_of(entry: AuditLogEntry, names: Mapping[str, str]) -> Markup:
    if program := _PROGRAM_NAME.fullmatch(entry.user_name):
        return Markup("The program {} of {}").format(_strong(program[2]), _strong(program[1]))
    if not entry.user_uuid:
        return Markup("The {}").format(plain(entry.user_name or "platform"))
    # A member may take another's name at any time: the address is shown as it was recorded.
    name, address = names.get(f"user {entry.user_uuid}", entry.user_name), entry.user_name
    return _strong(name if name == address else f"{name} ({address})")


def _words(kind: str, fact: Any, names: Mapping[str, str]) -> str:
    if fact is None or isinstance(fact, bool):
        return ""
    if kind in _BY_NAME:
        known = names.get(f"{kind} {fact}")
        nameless = f"member {fact}" if kind == "user" else str(fact)[:SHORT_ID]
        return _strong(known) if known else plain(nameless)
    if isinstance(fact, list):
        words = [_words(kind.removesuffix("s"), each, names) for each in fact]
        between = Markup("; ") if kind == "rights" else Markup(", ")
        return between.join(words) or "nothing"
    write = _WRITTEN.get(kind)
    return plain(str(fact)) if write is None else write(fact)


def _strong(text: str) -> Markup:
    return Markup("<b>{}</b>").format(plain(text))


def _of_code(code: str) -> str:
    return plain(code).replace("_", " ").replace("-", " ").lower()


def _limit(fact: Mapping[str, Any]) -> str:
    words = bounds(per_cycle=fact["per_cycle"], period=fact["cycle_period"], day=fact["cycle_day"])
    return f"{(Decimal(fact['sats']) / SATS_PER_BTC).normalize():f} BTC {words}"


def _right(permission: str) -> str:
    held = {name.value: words for name, words in PERMISSION_WORDS.items()}
    return held.get(permission, plain(permission))


def _path(path: str) -> str:
    return TITLES.get(path, _of_code(path.rpartition("/")[2]))


def _tried(path: str) -> str:
    words = _TRIED.get(path, "")
    return words[:1].lower() + words[1:] or _of_code(path)


_BY_NAME: Final = frozenset({"vault", "proposal", "role", "user", "contract"})
_WRITTEN: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        **dict.fromkeys(("name", "email", "ticker"), _strong),
        **dict.fromkeys(("code", "function"), _of_code),
        "sats": amount,
        "limit": _limit,
        "right": _right,
        "path": _path,
        "tried": _tried,
        "webhook": lambda text: plain(text)[:SHORT_ID],
    }
)
