"""For the operator's command line: the first organisation, and accounts without an invitation."""

from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.auth import Password
from custody.schemas.common import EmailAddress, Name, Request
from custody.server.calls import Ctx
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.people.organisations import found_organisation, found_workspace, record_founding
from custody.server.people.people import MEMBER_ADDED, add_membership
from custody.server.people.staff import permissions_of
from custody.server.rules.audit import Event
from custody.server.rules.credentials import OPERATOR, check_new_password
from custody.server.services import Services
from custody.server.sign_in.accounts import add_account, find_user
from custody.server.store.models import RoleRow, WorkspaceRow
from custody.server.vaults.stored import place_of
from multisig import Network

APPOINTED = Event("OPERATOR_APPOINTED", "// {user}")
DISMISSED = Event("OPERATOR_DISMISSED", "// {user}")


class NewPerson(Request):
    """``password`` is needed for an address that has no account yet, and must be absent for one that has."""

    email: EmailAddress
    password: Password | None = None
    first_name: Name | None = None
    surname: Name | None = None
    two_factor: bool = True


class NewOrganisation(Request):
    """``workspace``: the name of its first one."""

    organisation: Name
    workspace: Name


@dataclass(frozen=True)
class Placement:
    """The new member's user, role, workspace and organisation, by id."""

    organisation_id: int
    workspace_id: int
    role_id: int
    user_id: int


def has_account(services: Services, email: str) -> bool:
    with services.store.read() as db:
        return find_user(db, email) is not None


def bootstrap(services: Services, names: NewOrganisation, chain: Network, person: NewPerson) -> Placement:
    """Creates an organisation, its first workspace on ``chain``, the first roles, and the administrator.

    Raises Invalid, and StateConflict where the platform's other workspaces are on another test network.
    """
    hashed = _hash(services, person)
    with services.store.write() as db:
        ctx = Ctx(services, OPERATOR, db)
        org = found_organisation(ctx, names.organisation)
        founded, administrator = found_workspace(
            ctx, org.id, name=names.workspace, description="", chain=chain
        )
        record_founding(ctx, place_of(db, founded.id), founded)
        return _place(services, db, founded, administrator, person, hashed)


def add_member(services: Services, workspace_id: int, role: str, person: NewPerson) -> Placement:
    """Gives a user a role in a workspace; creates the account where there is none. Raises NotFound,
    Invalid.
    """
    hashed = _hash(services, person)
    with services.store.write() as db:
        place = db.get(WorkspaceRow, workspace_id)
        if place is None:
            raise NotFound(f"There is no workspace {workspace_id}.")
        named = select(RoleRow).where(RoleRow.workspace_id == place.id, RoleRow.name == role)
        held = db.scalars(named).one_or_none()
        if held is None:
            raise NotFound(f"Workspace {place.id} has no role called {role}.")
        return _place(services, db, place, held, person, hashed)


def make_operator(services: Services, email: str, *, is_operator: bool) -> int:
    """Sets whether an account reviews requests for organisations. Returns the user's id. Raises NotFound."""
    with services.store.write() as db:
        user = find_user(db, email.strip().lower())
        if user is None:
            raise NotFound(f"There is no account for {email}.")
        if user.is_operator is not is_operator:
            user.is_operator = is_operator
            event = APPOINTED if is_operator else DISMISSED
            services.tools.audit.record(db, OPERATOR, event, None, user=user.id)
        return user.id


def require_password(person: NewPerson) -> str | None:
    """The password, if there is one. Raises Invalid where it is easily guessed."""
    given = None if person.password is None else person.password.get_secret_value()
    if given is not None:
        check_new_password(given, person.email)
    return given


def _hash(services: Services, person: NewPerson) -> str | None:
    given = require_password(person)
    return None if given is None else services.tools.passwords.hash(given)


def _place(
    services: Services, db: Session, place: WorkspaceRow, role: RoleRow, person: NewPerson, hashed: str | None
) -> Placement:
    email, user = person.email, find_user(db, person.email)
    if user is not None and hashed is not None:
        raise StateConflict(f"{email} has an account already, with a password of its own.")
    if user is None:
        if hashed is None:
            raise Invalid.at("/password", f"{email} has no account yet: a password is needed.")
        given = person.model_dump(include={"first_name", "surname", "two_factor"})
        user = add_account(db, services.tools.clock(), email, hashed, **given)
    add_membership(db, services.tools.clock(), user.id, place.id, role.id)
    access = replace(place_of(db, place.id), role_id=role.id, permissions=permissions_of(db, role.id))
    payload = {"user_id": user.id, "role_id": role.id}
    services.tools.audit.record(db, OPERATOR, MEMBER_ADDED, access, payload, user=user.id, role=role.id)
    return Placement(place.organisation_id, place.id, role.id, user.id)
