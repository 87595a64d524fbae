"""The audit log: filtered, paged, the chain of each page checked, and exported; its rows as sentences that a
person reads, made of the facts that each row stores. A sentence that begins with a small letter follows the
name of who acted.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup, escape
from starlette.responses import Response

from custody.common.change_words import TITLES
from custody.common.pages.serving import attachment
from custody.common.text import SATS_PER_BTC, SHORT_ID, amount, bounds, plain, short_address
from custody.schemas.call import PERMISSION_WORDS
from custody.schemas.calls import CALLS
from custody.schemas.logs import EXPORT_AUDIT_LOGS, LOGS, AuditLogEntry, LogsPage
from custody.server import nouns  # noqa: F401 - their events
from custody.server.audit.calls import facts_in
from custody.server.console.addresses import labels_of
from custody.server.console.context import PageContext
from custody.server.console.proposals import members_by_id
from custody.server.console.rendering import CSV
from custody.server.console.table import Row
from custody.server.console.typed import require_days_in_order
from custody.server.errors import Invalid
from custody.server.rules.audit import Category, Event, Facts, chosen, event_of, kind_of, paid_by

PAGE = 50
# Sign-ins belong to no workspace: they are in the platform's own log.
CATEGORIES = {
    category: category.value.replace("_", " ").capitalize()
    for category in Category
    if category is not Category.SIGN_IN
}


def audit(page: PageContext) -> Response:
    wanted, before = _wanted(page, page.query), page.cursor("before")
    cursor = None if before is None else str(before)
    logs = LogsPage(logs=[], page=1, page_size=PAGE, total=0, next_cursor=None)
    try:
        require_days_in_order(page)
        logs = page.read(LOGS, **wanted, cursor=cursor, order="newest", page_size=PAGE)
    except Invalid as error:
        page.problem = error
    recipients = _recipients(page, logs)
    with page.reading() as ctx:
        facts = facts_in(ctx, logs.logs)
    return page.render(
        "audit/audit.html",
        logs=logs,
        rows=[
            (
                each,
                row_words(each, facts[each.event_uid], logs.names, recipients)
                or stored_words(each, logs.names),
            )
            for each in logs.logs
        ],
        people=_people(page, logs),
        is_first=before is None,
        categories=CATEGORIES,
        filters={name: str(value) for name, value in wanted.items() if name not in _IDS},
        is_chained=None if len(wanted) > len(_IDS) else _are_chained(logs.logs),
    )


def _recipients(page: PageContext, logs: LogsPage) -> dict[str, Markup]:
    """By a payment's id: the first recipient's current name in the address book, and its address, short."""
    labels = labels_of(page, sorted({each.address for each in logs.recipients.values()}))
    return {
        psbt_id: recipient_words(each.address, labels.get(each.address), each.others)
        for psbt_id, each in logs.recipients.items()
    }


def _people(page: PageContext, logs: LogsPage) -> list[tuple[str, str]]:
    """The filter's choices: the members, for a person who may see them, and each actor on this logs."""
    people = {"0": "The platform", **members_by_id(page)}
    for entry in logs.logs:
        if str(entry.user_uuid) not in people and " " not in entry.user_name:
            people[str(entry.user_uuid)] = entry.user_name
    wanted = page.query("user_uuid")
    if wanted and wanted not in people:
        people[wanted] = logs.names.get(f"user {wanted}", f"member {wanted}")
    return sorted(people.items(), key=lambda each: each[1].casefold())


_IDS = frozenset({"org_uid", "workspace_uid"})


def _wanted(page: PageContext, read: Callable[[str], str]) -> dict[str, Any]:
    """The filter as `get-logs` takes it."""
    given = {name: read(name) for name in ("category", "user_uuid", "from_day", "to_day")}
    ids = {"org_uid": page.workspace.organisation.org_id, "workspace_uid": page.workspace.id}
    return {**ids, **{name: value for name, value in given.items() if value}}


def _are_chained(rows: list[AuditLogEntry]) -> bool:
    """Whether each row names the hash of the one before, the newest first. `custody audit verify` reads the
    whole chain.
    """
    return all(after.prev_hash == before.event_hash for after, before in pairwise(rows))


def export(page: PageContext) -> Response:
    """The platform's own CSV, which `custody audit verify-export` reads."""
    wanted = _wanted(page, page.form.one)
    exported = page.act(EXPORT_AUDIT_LOGS, **wanted)
    headers = attachment(f"audit-{page.workspace.id}.csv")
    return Response(exported.csv, headers=headers, media_type=CSV)


# --- rows in words -----------------------------------------------------------------------------------------

_TRIED: Final = {call.path: call.second_person or call.attempt for call in CALLS}
_PROGRAM_NAME: Final = re.compile(r"(\S+), service account [0-9]+ \((.*)\)", re.DOTALL)


def row_words(
    entry: AuditLogEntry,
    facts: Facts,
    names: Mapping[str, str],
    recipients: Mapping[str, Markup] = MappingProxyType({}),
) -> Markup | None:
    """The sentence of a row's event; None where it has none. ``names``: by kind and id (`LogsPage`).
    ``recipients``: whom a payment pays, by its id. Markup escapes each part.
    """
    event = event_of(entry.action, facts)
    if event is None or not event.says:
        return None
    try:
        return _sentence(event, who_of(entry, names), facts, names, recipients)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        # Facts of another form were altered: `custody audit verify` names the row.
        return None


def stored_words(entry: AuditLogEntry, names: Mapping[str, str]) -> Markup:
    """What the row itself describes."""
    stored = _of_code(entry.action), plain(entry.description)
    return Markup("{}, {}: {}").format(who_of(entry, names), *stored)


def _sentence(
    event: Event, who: Markup, facts: Facts, names: Mapping[str, str], recipients: Mapping[str, Markup]
) -> Markup:
    paid = recipients.get(paid_by(facts))
    sentence = chosen(event.says, {**facts, "paid": paid})
    parts = {name: _words(kind_of(name), fact, names) for name, fact in facts.items()}
    said = Markup(sentence).format(**parts, paid=paid)  # noqa: S704 - the events' own words
    return said if sentence[0].isupper() else Markup("{} {}").format(who, said)


def recipient_words(address: str, name: str | None, others: int) -> Markup:
    """A name stands out, so that none of it reads as the sentence's own words. An entry of the address book
    may be renamed at any time: the address is shown with it.
    """
    short = escape(plain(short_address(address)))
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
        nameless = plain(f"member {fact}" if kind == "user" else str(fact)[:SHORT_ID])
        if known and kind == "proposal":
            # Two may be described alike.
            return Markup("{} ({})").format(_strong(known), nameless)
        return _strong(known) if known else nameless
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
        "path": lambda path: TITLES.get(path, _of_code(path.rpartition("/")[2])),
        "tried": _tried,
        "webhook": lambda text: plain(text)[:SHORT_ID],
    }
)


_HERE = "/w/{workspace_id:int}/audit"
ROWS = (
    Row("GET", _HERE, audit),
    Row("POST", _HERE + "/export", export, again=audit, acts=(EXPORT_AUDIT_LOGS,)),
)
