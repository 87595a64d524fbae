"""Searching proposals: by title, recipient, amount and id. A search reads a bounded window of the list at a
time; the next page continues there.
"""

import contextlib
from typing import Final

from sqlalchemy import ColumnElement, Exists, FromClause, Select, String, cast, exists, func, or_, select
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.schemas.permissions import PermissionName
from custody.server.errors import Invalid
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store.models import AddressBookEntryRow, DecisionRow, ProposalRow
from multisig import parse_btc
from multisig.errors import InvalidAmount

# Proposals that are read for one word. For more words they are fewer: each word costs as much as the first.
WINDOW: Final = 5_000
# Read first, for common words.
NEAREST: Final = 500
MAX_WORDS: Final = 8
# Shorter words match too many ids.
LEAST_OF_ID: Final = 4
# Who may read the address book (web/workspace.py).
_BOOK_READERS = frozenset({PermissionName.PAYMENT_INIT, PermissionName.MANAGE_WORKSPACE})


def may_read_book(access: WorkspaceAccess) -> bool:
    return access.holds_any(_BOOK_READERS)


def search(
    db: Session,
    access: WorkspaceAccess,
    query: Select[ProposalRow],
    text: str,
    count: int,
    *,
    newest_first: bool,
) -> tuple[list[str], str | None]:
    """The ids of the first ``count`` proposals of the ordered query that have every word; and the id of the
    last one that was read, where the window ended before the list did. Raises Invalid.
    """
    words = set(text.split())
    if len(words) > MAX_WORDS:
        raise Invalid.at("/search", f"A search has at most {MAX_WORDS} different words.")
    most = max(1, WINDOW // max(1, len(words)))
    ours = None
    if may_read_book(access):
        ours = AddressBookEntryRow.workspace_id == access.workspace_id
    is_sqlite = db.get_bind().dialect.name == "sqlite"
    found: list[str] = []
    for looked_at in (NEAREST, most):
        window = query.with_only_columns(*_COLUMNS).limit(min(looked_at, most)).subquery()
        has_all = [_has(window, word, ours, is_sqlite=is_sqlite) for word in words]
        order = (window.c.created_at, window.c.id)
        matching = select(window.c.id).where(*has_all)
        matching = matching.order_by(*(each.desc() for each in order) if newest_first else order)
        found = list(db.scalars(matching.limit(count)))
        if len(found) == count:
            return found, None
    return found, db.scalar(query.with_only_columns(ProposalRow.id).offset(most - 1).limit(1))


_COLUMNS = (
    ProposalRow.id,
    ProposalRow.created_at,
    ProposalRow.description,
    ProposalRow.recipients,
    ProposalRow.amounts_sats,
    ProposalRow.txid_expected,
)


def _has(
    window: FromClause, word: str, ours: ColumnElement[bool] | None, *, is_sqlite: bool
) -> ColumnElement[bool]:
    """Whether the title or a recipient's name in the address book contains the word; or an address, the txid
    or the proposal's id begins with it; or it is an amount of a payment.
    """
    each = func.json_each if is_sqlite else func.json_array_elements_text
    recipients = cast(window.c.recipients, String)
    found = [
        func.lower(window.c.description).contains(word.lower(), autoescape=True),
        # Bech32 may be written in upper case (BIP-173), and is stored in lower case.
        *(recipients.contains(f'"{text}', autoescape=True) for text in {word, word.lower()}),
    ]
    if ours is not None:
        is_named = AddressBookEntryRow.name_key.contains(name_key(word), autoescape=True)
        recipient = each(window.c.recipients).table_valued("value").c.value
        named = select(AddressBookEntryRow.address).where(ours, is_named)
        # A count, not EXISTS, which PostgreSQL turns into a join that reads the address book for each
        # proposal.
        count = select(func.count().filter(recipient.in_(named))).select_from(recipient.table)
        found.append(count.scalar_subquery() > 0)
    if amounts := _amounts(word):
        amount = cast(each(window.c.amounts_sats).table_valued("value").c.value, String)
        found.append(exists(select(amount).where(amount.in_(amounts))))
    if len(word) >= LEAST_OF_ID:
        ids = (window.c.id, window.c.txid_expected)
        found += [each.startswith(word.lower(), autoescape=True) for each in ids]
    return or_(*found)


def _amounts(word: str) -> list[str]:
    """The amounts in satoshi that a word may mean: as bitcoin and as satoshi."""
    found = {word} if word.isascii() and word.isdecimal() else set()
    with contextlib.suppress(InvalidAmount):
        found.add(str(int(parse_btc(word))))
    return sorted(found)


def has_decided(user_id: int) -> Exists:
    """The user has declined, or has signed every input."""
    return exists().where(
        DecisionRow.proposal_id == ProposalRow.id,
        DecisionRow.user_id == user_id,
        (DecisionRow.decision == "reject") | DecisionRow.is_complete,
    )
