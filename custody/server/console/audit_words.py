"""Rows of the audit log as sentences that a person reads. What is stored stays as it is, and is shown beside
them. Nouns that are converted have their own (`domain.audit.Event`); the others stand here.

One table: for each action how its description is written, and the sentence. In both, ``{vault}`` and the like
are the parts that change. A sentence that begins with a small letter follows the name of who acted. A
name that a person chose may hold the table's own words: a row that can be read in two ways is shown as it is
stored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Final

from markupsafe import Markup

from custody.common.change_words import PERMISSION_WORDS, TITLES
from custody.common.limit_words import bounds
from custody.common.text import SHORT_ID, amount, plain
from custody.schemas.logs import AuditLogEntry
from custody.schemas.permissions import PermissionName
from custody.schemas.proposals import ProposalStatus
from custody.server import (
    address_book,
    changes,
    forwards,
    identity_providers,
    invitations,
    key_revocation,
    limits,
    logs,
    members,
    roles,
    second_person_rule,
    service_accounts,
    vault_controls,
    vault_replacement,
    vaults,
    webhooks,
    workspaces,
)
from custody.server.console.refusal_words import WHY, tried_words
from custody.server.domain.audit import Category, Event
from custody.server.proposals import ending, signing
from custody.server.service.people import workspaces as founding
from custody.server.service.webhooks import delivery
from custody.server.sign_in import identity

# What a status of a proposal is called where the chain led to it.
_STATUS_WORDS: Final[Mapping[ProposalStatus, str]] = MappingProxyType(
    {
        ProposalStatus.BROADCASTING: "on its way",
        ProposalStatus.CONFIRMED: "confirmed in a block",
        ProposalStatus.REPLACED: "replaced by another version",
        ProposalStatus.INVALIDATED: "no longer possible: its coins are gone",
        ProposalStatus.SIGNED: "signed, and not on the network",
        ProposalStatus.STALLED: "signed, and not on the network",
        ProposalStatus.CANCELLED: "cancelled",
        ProposalStatus.EXPIRED: "expired",
        ProposalStatus.FAILED: "failed",
    }
)
_CREATED: Final = "proposal {proposal} of vault {vault}, "

_EVENTS: Final = [
    each
    for noun in (
        founding,
        workspaces,
        members,
        invitations,
        roles,
        limits,
        address_book,
        logs,
        service_accounts,
        vaults,
        vault_controls,
        vault_replacement,
        key_revocation,
        webhooks,
        delivery,
        identity_providers,
        forwards,
        signing,
        ending,
        identity,
        second_person_rule,
        changes,
    )
    for each in vars(noun).values()
    if isinstance(each, Event) and each.says
]
# By action.
_SENTENCES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        # --- people
        "SERVICE_ACCOUNT_REFUSED": (
            ("service account {text}, its secret was used from {text2}",
             "The secret of a program was used from {text2}, and was refused"),
        ),
        # --- payments
        "PROPOSAL_CREATED": (
            (_CREATED + "{sats} sat with the fee, tx {text}, replaces {version}",
             "proposed a newer version of the proposal {version}, of the vault {vault}{paid}: {sats}"),
            (_CREATED + "{sats} sat with the fee, tx {text}, takes back {version}",
             "proposed to take back the proposal {version} from the vault {vault}"),
            (_CREATED + "{sats} sat with the fee, tx {text}",
             "proposed the payment {proposal} from the vault {vault}{paid}: {sats} with the fee"),
            (_CREATED + "a proof that moves nothing, {more}, tx {text}",
             "asked for a proof of the vault {vault}: the proposal {proposal}"),
        ),
        "TRANSACTION_BROADCAST": (
            ("proposal {proposal}, tx {text}", "sent the proposal {proposal} to the network"),
        ),
        "BROADCAST_STALLED": (
            ("proposal {proposal}, {code}",
             "could not send the proposal {proposal} to the network yet: {code}"),
        ),
        "BROADCAST_REFUSED": (
            ("proposal {proposal}, {code}", "The network refused the proposal {proposal}: {code}"),
        ),
        "PROPOSAL_REPLACED": (
            ("proposal {proposal}, a newer version is on the network: {version}",
             "A newer version of the proposal {proposal} is on the network"),
        ),
        # --- tokens
        "TOKEN_CREATED": (
            ("contract {text}, {name} of vault {vault}, bytecode {text2}, proposal {proposal}, tx {more}",
             "proposed the token {name} of the vault {vault}"),
        ),
        "TOKEN_CALLED": (
            ("call {text}, {code} of contract {contract} by vault {vault}, proposal {proposal}, tx {more}",
             "proposed a call of the token {contract} by the vault {vault}: {code}"),
        ),
        "CALL_RESUBMITTED": (
            ("call {text}, proposal {proposal}, tx {more}",
             "sent the call of the proposal {proposal} to the network again"),
        ),
    }
    | {
        action: tuple((event.written, event.says) for event in events)
        for action, events in groupby(_EVENTS, lambda event: event.action)
    }
)  # fmt: skip
_BY_STATUS: Final = MappingProxyType(
    {
        f"PROPOSAL_{status.value}": (
            "proposal {proposal}, {code}",
            f"found the proposal {{proposal}} {words}",
        )
        for status, words in _STATUS_WORDS.items()
    }
)
_PART: Final = re.compile(r"{([a-z_]+?)([0-9]?)}")
# The parts that no person chose: from where such a part begins, it can end at one place only.
_ID: Final = "[0-9a-f]{32}"
_NUMBER: Final = "[0-9]{1,19}+"
_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("vault", "proposal", "version"), _ID),
        **dict.fromkeys(("role", "user", "contract", "sats"), _NUMBER),
        "limit": r"[0-9]{1,12}\.[0-9]{8} BTC a (?:movement|cycle), "
        "(?:W from day [1-7]|M from day [1-9][0-9]?)",
        "rights": "nothing|(?:{0})(?:, (?:{0}))*".format("|".join(PermissionName)),
        "path": "[a-z0-9/-]+",
        "code": "[A-Za-z0-9_-]+",
        **dict.fromkeys(("text", "short", "email", "address"), r"\S+"),
    }
)
# The parts that are ids of records, and the word before such an id.
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("vault", "proposal", "role", "user", "contract")} | {"version": "proposal"}
)
_PROGRAM_NAME: Final = re.compile(r"(\S+), service account [0-9]+ \((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class RowWords:
    """A row in words. ``is_known``: the table has a sentence for it."""

    sentence: Markup
    is_known: bool


def row_words(
    entry: AuditLogEntry, names: Mapping[str, str], recipients: Mapping[str, Markup] = MappingProxyType({})
) -> RowWords:
    """``names``: by the words of the row (`LogsPage`). ``recipients``: whom a payment pays, by its id. Markup
    escapes each part.
    """
    who = who_of(entry, names)
    if (found := _read(entry)) is not None:
        sentence, read = found
        parts = {each: _words(each, value, names) for each, value in read}
        paid = recipients.get(dict(read).get("proposal", ""))
        parts["paid"] = Markup(" to {}").format(paid) if paid else ""
        said = Markup(sentence).format(**parts)  # noqa: S704 - the table's own words
        return RowWords(said if sentence[0].isupper() else Markup("{} {}").format(who, said), is_known=True)
    if entry.category == Category.ACCESS:
        return RowWords(_refused(who, entry), is_known=True)
    stored = Markup("{}, {}: {}").format(who, _of_code(entry.action), plain(entry.description))
    return RowWords(stored, is_known=False)


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


def _rows_of(action: str) -> tuple[tuple[str, str], ...]:
    led_to = _BY_STATUS.get(action)
    return _SENTENCES.get(action, ()) + (() if led_to is None else (led_to,))


def _read(entry: AuditLogEntry) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The sentence and its parts, where the row can be read in one way only."""
    found = {
        (sentence, tuple(match.groupdict().items()))
        for written, sentence in _rows_of(entry.action)
        for pattern in _patterns(written)
        if (match := pattern.fullmatch(entry.description)) is not None
    }
    return found.pop() if len(found) == 1 else None


@cache
def _patterns(written: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A person's words as short as possible, and as long: any other reading lies between the two."""
    kept = [re.escape(text) for text in re.split(r"{[a-z_]+[0-9]?}", written)]

    def pattern(few: str) -> re.Pattern[str]:
        groups = [
            f"(?P<{name}{number}>{_FORMS.get(name, ('.*' if name == 'more' else '.+') + few)})"
            for name, number in _PART.findall(written)
        ]
        found = "".join(text + group for text, group in zip(kept, [*groups, ""], strict=True))
        return re.compile(found, re.DOTALL)

    return pattern("?"), pattern("")


def _words(part: str, value: str, names: Mapping[str, str]) -> str:
    kind = part.rstrip("23456789")
    if kind in _KINDS:
        known = names.get(f"{_KINDS[kind]} {value}")
        nameless = f"member {plain(value)}" if kind == "user" else plain(value)[:SHORT_ID]
        return _strong(known) if known else nameless
    write = _WRITTEN.get(kind)
    return plain(value) if write is None else write(value)


def _strong(text: str) -> Markup:
    return Markup("<b>{}</b>").format(plain(text))


def _of_code(code: str) -> str:
    return plain(code).replace("_", " ").replace("-", " ").lower()


def _limit(text: str) -> str:
    """As `policy_words` writes it: ``0.50000000 BTC a cycle, M from day 1``."""
    most, _, _, bound, period, *_, day = text.replace(",", "").split()
    words = bounds(per_cycle=bound == "cycle", period=period, day=int(day))
    return f"{Decimal(most).normalize():f} BTC {words}"


def _rights(text: str) -> str:
    held = {name.value: words for name, words in PERMISSION_WORDS.items()}
    return "; ".join(held.get(each, each) for each in text.split(", "))


def _sats(text: str) -> str:
    return amount(int(text))


def _path(text: str) -> str:
    return TITLES.get(text, _of_code(text.rpartition("/")[2]))


_WRITTEN: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "name": _strong,
        "email": _strong,
        "sats": _sats,
        "limit": _limit,
        "rights": _rights,
        "path": _path,
        "code": _of_code,
        "short": lambda text: plain(text)[:SHORT_ID],
    }
)


def _refused(who: Markup, entry: AuditLogEntry) -> Markup:
    """``POST /api/v1/update-role``, and why as the error's code."""
    path = entry.description.rpartition(" ")[2]
    tried, why = tried_words(path) or _of_code(path), WHY.get(entry.action) or _of_code(entry.action)
    return Markup("{} tried to {}, and was refused: {}").format(who, tried, why)
