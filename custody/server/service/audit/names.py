"""The present names of the things that rows of the log name by id; the rows themselves do not change."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Select, exists, select
from sqlalchemy.orm import Session

from custody.schemas.logs import MAX_NAMES, LogRecipient
from custody.schemas.users import PermissionName
from custody.server.domain.audit import AuditRow, chain_of
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.store.models import (
    AuditEvent,
    Contract,
    Membership,
    Proposal,
    Role,
    User,
    Vault,
    full_name,
)

_ID: Final = re.compile(r"\b(vault|proposal) ([0-9a-f]{32})\b|\b(user|role|contract) ([1-9][0-9]{0,17})\b")
# Any of these lets a member read proposals and their titles.
_READERS: Final = frozenset(
    {
        PermissionName.VIEW_BALANCES,
        PermissionName.PAYMENT_INIT,
        PermissionName.PAYMENT_APPROVE,
        PermissionName.MANAGE_WORKSPACE,
    }
)
# By the word before the id: the table, its key and its name.
_NAMED: Final[Mapping[str, tuple[Any, Any, Any]]] = MappingProxyType(
    {
        "vault": (Vault, Vault.id, Vault.name),
        "role": (Role, Role.id, Role.name),
        "proposal": (Proposal, Proposal.id, Proposal.description),
        "contract": (Contract, Contract.uid, Contract.ticker),
    }
)


def names_in(db: Session, access: WorkspaceAccess, rows: Sequence[AuditRow]) -> dict[str, str]:
    """The names by the words in the rows, such as ``vault 1f…`` or ``user 7``; the rows' actors too. Only of
    this workspace, and only what the reader may see. What has no name or was deleted is left out.

    At most `MAX_NAMES`, actors first: a description that a person wrote may contain any number of ids.
    """
    named = [("user", str(row.user_uuid)) for row in rows]
    named += [
        (found[1] or found[3], found[2] or found[4])
        for row in rows
        for found in _ID.finditer(row.description)
    ]
    ids: dict[str, set[str]] = {}
    for kind, value in islice(dict.fromkeys(named), MAX_NAMES):
        ids.setdefault(kind, set()).add(value)
    if not access.holds_any(_READERS):
        ids.pop("proposal", None)
    people = {int(each) for each in ids.pop("user", ())}
    names = {f"user {number}": name for number, name in _people(db, access, people).items()}
    for kind, wanted in ids.items():
        for key, name, workspace_id in db.execute(_names_of(kind, wanted)):
            if name and workspace_id == access.workspace_id:
                names[f"{kind} {key}"] = name
    return names


def recipients_in(db: Session, access: WorkspaceAccess, rows: Sequence[AuditRow]) -> dict[str, LogRecipient]:
    """Of the payments that the rows say were proposed, by id, where the reader may read them."""
    created = (row.description for row in rows if row.action == "PROPOSAL_CREATED")
    wanted = {
        found[2] for text in created if (found := _ID.match(text)) is not None and found[1] == "proposal"
    }
    if not wanted or not access.holds_any(_READERS):
        return {}
    query = select(Proposal.id, Proposal.recipients, Proposal.workspace_id).where(Proposal.id.in_(wanted))
    return {
        key: LogRecipient(address=paid[0], others=len(set(paid)) - 1)
        for key, paid, workspace_id in db.execute(query)
        if paid and workspace_id == access.workspace_id
    }


def _names_of(kind: str, wanted: Iterable[str]) -> Select[Any]:
    """Selects by id alone: with the workspace in the condition SQLite would scan all of its rows."""
    model, key, name = _NAMED[kind]
    typed = [int(each) if kind in {"role", "contract"} else each for each in wanted]
    return select(key, name, model.workspace_id).where(key.in_(typed))


def _people(db: Session, access: WorkspaceAccess, wanted: Iterable[int]) -> dict[int, str]:
    """Members, and users who acted in this log; the latter by their e-mail address where they have no
    name.
    """
    chain = chain_of(str(access.organisation_id), str(access.workspace_id))
    is_member = exists().where(Membership.user_id == User.id, Membership.workspace_id == access.workspace_id)
    has_acted = exists().where(AuditEvent.chain_id == chain, AuditEvent.user_uuid == User.id)
    query = select(User, is_member, has_acted).where(User.id.in_(wanted))
    named = {
        user.id: full_name(user.first_name, user.surname) or (user.email if acted else "")
        for user, member, acted in db.execute(query)
        if member or acted
    }
    return {number: name for number, name in named.items() if name}
