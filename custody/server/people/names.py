"""What a reader of a workspace calls its people, and those of whom a vault asks for an approval."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.orm import Session

from custody.schemas.common import NamedApprover
from custody.schemas.users import MEMBERS
from custody.server.rules.approvers import Approver, counts_as
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store.models import ProposalRow, RoleRow, UserRow, full_name


def shown_name(
    access: WorkspaceAccess, first_name: str | None, surname: str | None, email: str | None
) -> str | None:
    """What a reader calls a person: the name that they gave, else the e-mail address, for a reader who may
    see the members.
    """
    return full_name(first_name, surname) or (email if access.holds_any(MEMBERS.permissions) else None)


def names_of(db: Session, access: WorkspaceAccess, user_ids: Iterable[int]) -> dict[int, str]:
    """By id, as `shown_name` has them; those without are left out."""
    ids = list(user_ids)
    rows = db.execute(_NAMES, {"ids": ids}) if ids else ()
    named = {user_id: shown_name(access, *parts) for user_id, *parts in rows}
    return {user_id: name for user_id, name in named.items() if name}


def proposer_name(proposal: ProposalRow, names: Mapping[int, str]) -> str | None:
    """With the program that proposed it, if one did."""
    name = names.get(proposal.created_by)
    if proposal.created_by_program is None:
        return name
    return f"the program {proposal.created_by_program}, of {name or f'member {proposal.created_by}'}"


def approver_names(db: Session, access: WorkspaceAccess, keys: Collection[str]) -> dict[str, str]:
    """By the keys of `rules.approvers`."""
    ids = {kind: [int(key[5:]) for key in keys if key.startswith(kind)] for kind in ("role", "user")}
    query = select(RoleRow.id, RoleRow.name).where(RoleRow.id.in_(ids["role"]))
    roles = dict(db.execute(query).all()) if ids["role"] else {}
    people = names_of(db, access, ids["user"])
    return {
        **{f"role:{role_id}": name for role_id, name in roles.items()},
        **{f"user:{user_id}": name for user_id, name in people.items()},
    }


def shown_approvers(
    keys: Collection[str], names: Mapping[str, str], able: Iterable[Approver]
) -> list[NamedApprover]:
    """``able``: the vault's signers who can approve now."""
    given = defaultdict[str | None, list[str]](list)
    for each in able:
        given[counts_as(keys, each)].append(str(each[0]))
    return [NamedApprover(key=key, name=names.get(key), user_ids=given[key]) for key in keys]


_IDS: BindParameter[int] = bindparam("ids", expanding=True)
_NAMES = select(UserRow.id, UserRow.first_name, UserRow.surname, UserRow.email).where(UserRow.id.in_(_IDS))
