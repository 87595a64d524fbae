"""For the operator's command line: the first organisation, and accounts without an invitation."""

from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.common import EmailAddress, Name
from custody.schemas.faults import fault_words
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.people.founding import (
    found_organisation,
    found_workspace,
    record_founding,
    record_organisation,
)
from custody.server.people.people import MEMBER_ADDED, add_membership
from custody.server.people.staff import permissions_of
from custody.server.rules.audit import Event
from custody.server.rules.credentials import OPERATOR, check_new_password
from custody.server.rules.ports import Clock
from custody.server.services import Services
from custody.server.sign_in.stored_accounts import add_account, find_user
from custody.server.store.models import RoleRow, UserRow, WorkspaceRow
from custody.server.vaults.stored import place_of
from multisig import Network

# As `custody.schemas.auth.Password` requires.
MIN_PASSWORD_CHARACTERS, MAX_PASSWORD_CHARACTERS = 8, 256


APPOINTED = Event("OPERATOR_APPOINTED", "user {user}")
DISMISSED = Event("OPERATOR_DISMISSED", "user {user}")


@dataclass(frozen=True)
class NewPerson:
    """``password`` is needed for an address that has no account yet, and must be absent for one that has."""

    email: str
    password: str | None
    first_name: str | None = None
    surname: str | None = None
    two_factor: bool = True

    def __repr__(self) -> str:
        return f"NewPerson(email={self.email!r})"


@dataclass(frozen=True)
class Placement:
    """The new member's user, role, workspace and organisation, by id."""

    organisation_id: int
    workspace_id: int
    role_id: int
    user_id: int


def has_account(services: Services, email: str) -> bool:
    with services.store.read() as db:
        return find_user(db, _email(email)) is not None


def bootstrap(
    services: Services, *, organisation: str, workspace: str, chain: Network, person: NewPerson
) -> Placement:
    """Creates an organisation, its first workspace on ``chain``, the first roles, and the administrator.

    Raises Invalid, and StateConflict where the platform's other workspaces are on another test network.
    """
    hashed, clock, audit = _hash(services, person), services.tools.clock, services.tools.audit
    with services.store.write() as db:
        org = found_organisation(db, clock, _name("organisation", organisation))
        name = _name("workspace", workspace)
        founded = found_workspace(db, clock, org, name=name, description="", chain=chain)
        record_organisation(db, audit, OPERATOR, org)
        record_founding(db, audit, OPERATOR, place_of(db, founded.workspace.id), founded)
        return _place(services, db, founded.workspace, founded.administrator, person, hashed)


def add_member(services: Services, *, workspace_id: int, role: str, person: NewPerson) -> Placement:
    """Gives a user a role in a workspace; creates the account where there is none. Raises NotFound,
    Invalid.
    """
    hashed = _hash(services, person)
    with services.store.write() as db:
        place = db.get(WorkspaceRow, workspace_id)
        if place is None:
            raise NotFound(f"There is no workspace {workspace_id}.")
        return _place(services, db, place, _role(db, place, role), person, hashed)


def make_operator(services: Services, email: str, *, is_operator: bool) -> int:
    """Sets whether an account reviews requests for organisations. Returns the user's id. Raises NotFound,
    Invalid.
    """
    with services.store.write() as db:
        user = find_user(db, _email(email))
        if user is None:
            raise NotFound(f"There is no account for {email}.")
        if user.is_operator is not is_operator:
            user.is_operator = is_operator
            event = APPOINTED if is_operator else DISMISSED
            services.tools.audit.record(db, OPERATOR, event, None, user=user.id)
        return user.id


def _hash(services: Services, person: NewPerson) -> str | None:
    if person.password is None:
        return None
    if not MIN_PASSWORD_CHARACTERS <= len(person.password) <= MAX_PASSWORD_CHARACTERS:
        raise _invalid("password", f"A password has at least {MIN_PASSWORD_CHARACTERS} characters.")
    check_new_password(person.password, _email(person.email))
    return services.tools.passwords.hash(person.password)


def _place(
    services: Services, db: Session, place: WorkspaceRow, role: RoleRow, person: NewPerson, hashed: str | None
) -> Placement:
    user = _account(db, services.tools.clock, person, hashed)
    add_membership(db, services.tools.clock(), user.id, place.id, role.id)
    access = replace(place_of(db, place.id), role_id=role.id, permissions=permissions_of(db, role.id))
    payload = {"user_id": user.id, "role_id": role.id}
    services.tools.audit.record(db, OPERATOR, MEMBER_ADDED, access, payload, user=user.id, role=role.id)
    return Placement(place.organisation_id, place.id, role.id, user.id)


def _account(db: Session, clock: Clock, person: NewPerson, hashed: str | None) -> UserRow:
    email = _email(person.email)
    user = find_user(db, email)
    if user is not None and hashed is not None:
        raise StateConflict(f"{email} has an account already, with a password of its own.")
    if user is not None:
        return user
    if hashed is None:
        raise _invalid("password", f"{email} has no account yet: a password is needed.")
    return add_account(
        db,
        clock,
        email,
        hashed,
        first_name=person.first_name and _name("first_name", person.first_name),
        surname=person.surname and _name("surname", person.surname),
        two_factor=person.two_factor,
    )


def _role(db: Session, place: WorkspaceRow, name: str) -> RoleRow:
    role = db.scalars(
        select(RoleRow).where(RoleRow.workspace_id == place.id, RoleRow.name == name)
    ).one_or_none()
    if role is None:
        raise NotFound(f"Workspace {place.id} has no role called {name}.")
    return role


def _email(text: str) -> str:
    try:
        return TypeAdapter[str](EmailAddress).validate_python(text)
    except ValidationError:
        raise _invalid("email", f"{text!r} is not an e-mail address.") from None


def _name(field: str, text: str) -> str:
    try:
        return TypeAdapter[str](Name).validate_python(text)
    except ValidationError as error:
        words = fault_words(dict(error.errors()[0]))
        raise _invalid(field, f"The {field.replace('_', ' ')}'s name {words}.") from None


def _invalid(field: str, sentence: str) -> Invalid:
    return Invalid.at(f"/{field}", sentence)
