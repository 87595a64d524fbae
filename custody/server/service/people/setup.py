"""For the operator's command line: the first organisation, and accounts without an invitation."""

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.common import EmailAddress, Name
from custody.schemas.faults import fault_words
from custody.server.domain.audit import Category
from custody.server.domain.credentials import OPERATOR, WorkspaceAccess, check_new_password
from custody.server.domain.errors import Invalid, NotFound, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.people.people import add_membership
from custody.server.service.people.staff import permissions_of
from custody.server.service.people.workspaces import found_organisation, found_workspace, record_founding
from custody.server.service.sign_in.accounts import Passwords, add_account, find_user
from custody.server.service.stored_vaults import place_of
from custody.server.store import Store
from custody.server.store.models import RoleRow, UserRow, WorkspaceRow
from multisig import Network

# As `custody.schemas.auth.Password` requires.
MIN_PASSWORD_CHARACTERS, MAX_PASSWORD_CHARACTERS = 8, 256


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


class Setup:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, passwords: Passwords) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._passwords = passwords

    def has_account(self, email: str) -> bool:
        with self._store.read() as db:
            return find_user(db, _email(email)) is not None

    def bootstrap(self, *, organisation: str, workspace: str, chain: Network, person: NewPerson) -> Placement:
        """Creates an organisation, its first workspace on ``chain``, the first roles, and the administrator.


        Raises Invalid, and StateConflict where the platform's other workspaces are on another test network.
        """
        hashed = self._hash(person)
        with self._store.write() as db:
            org = found_organisation(db, self._clock, _name("organisation", organisation))
            name = _name("workspace", workspace)
            founded = found_workspace(db, self._clock, org, name=name, description="", chain=chain)
            what = f"organisation {org.id}, named {org.name}"
            self._audit.record(
                db, OPERATOR, Category.PEOPLE, "ORGANISATION_CREATED", what, organisation_id=org.id
            )
            record_founding(db, self._audit, OPERATOR, place_of(db, founded.workspace.id), founded)
            return self._place(db, founded.workspace, founded.administrator, person, hashed)

    def add_member(self, *, workspace_id: int, role: str, person: NewPerson) -> Placement:
        """Gives a user a role in a workspace; creates the account where there is none. Raises NotFound,
        Invalid.
        """
        hashed = self._hash(person)
        with self._store.write() as db:
            place = db.get(WorkspaceRow, workspace_id)
            if place is None:
                raise NotFound(f"There is no workspace {workspace_id}.")
            return self._place(db, place, _role(db, place, role), person, hashed)

    def make_operator(self, email: str, *, is_operator: bool) -> int:
        """Sets whether an account reviews requests for organisations. Returns the user's id. Raises NotFound,
        Invalid.
        """
        with self._store.write() as db:
            user = find_user(db, _email(email))
            if user is None:
                raise NotFound(f"There is no account for {email}.")
            if user.is_operator is not is_operator:
                user.is_operator = is_operator
                action = "OPERATOR_APPOINTED" if is_operator else "OPERATOR_DISMISSED"
                self._audit.record(db, OPERATOR, Category.PEOPLE, action, f"user {user.id}")
            return user.id

    def _hash(self, person: NewPerson) -> str | None:
        if person.password is None:
            return None
        if not MIN_PASSWORD_CHARACTERS <= len(person.password) <= MAX_PASSWORD_CHARACTERS:
            raise _invalid("password", f"A password has at least {MIN_PASSWORD_CHARACTERS} characters.")
        check_new_password(person.password, _email(person.email))
        return self._passwords.hash(person.password)

    def _place(
        self, db: Session, place: WorkspaceRow, role: RoleRow, person: NewPerson, hashed: str | None
    ) -> Placement:
        user = self._account(db, person, hashed)
        db.flush()
        add_membership(db, self._clock(), user.id, place.id, role.id)
        access = WorkspaceAccess(
            workspace_id=place.id,
            organisation_id=place.organisation_id,
            network=place.network,
            chain=place.chain,
            role_id=role.id,
            permissions=permissions_of(db, role.id),
        )
        self._audit.record(
            db,
            OPERATOR,
            Category.PEOPLE,
            "MEMBER_ADDED",
            f"user {user.id} with role {role.id}",
            access=access,
            told={"user_id": user.id, "role_id": role.id},
        )
        return Placement(place.organisation_id, place.id, role.id, user.id)

    def _account(self, db: Session, person: NewPerson, hashed: str | None) -> UserRow:
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
            self._clock,
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
