"""A call of the platform, declared once: what it takes and answers, who may make it, by which of the
permissions that a role may carry, and its words.

The server serves it (`custody.server.calls`), the client's methods are written from it
(``tools/client_calls.py``), and the console and the command line read their words here. A declaration knows
nothing of the server.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter

from custody.schemas.common import LATER, Few, Listed, Many, Unreadable
from custody.schemas.errors import ErrorCode


class PermissionName(StrEnum):
    MANAGE_WORKSPACE = "MANAGE_WORKSPACE"
    PAYMENT_INIT = "PAYMENT_INIT"
    PAYMENT_APPROVE = "PAYMENT_APPROVE"
    VIEW_BALANCES = "VIEW_BALANCES"
    MANAGE_ROLE = "MANAGE_ROLE"
    MANAGE_USERS = "MANAGE_USERS"
    VIEW_LOGS = "VIEW_LOGS"


PERMISSION_WORDS: Final[Mapping[PermissionName, str]] = {
    PermissionName.MANAGE_WORKSPACE: "Propose payments up to the limit; manage vaults, tokens, the workspace",
    PermissionName.PAYMENT_INIT: "Forward one's own money, transfer tokens, keep the address book",
    PermissionName.PAYMENT_APPROVE: "Approve payments as a signer, freeze and unfreeze vaults",
    PermissionName.VIEW_BALANCES: "See balances and payments",
    PermissionName.MANAGE_ROLE: "Manage roles and their limits",
    PermissionName.MANAGE_USERS: "Invite, move and remove members",
    PermissionName.VIEW_LOGS: "Read the audit log",
}


class Auth(Enum):
    """What a caller needs where the call names no workspace."""

    OPEN = "open"  # nothing: sign-in itself
    SIGNED_IN = "signed in"  # a session: the caller's own records


ANY_MEMBER: Final[frozenset[PermissionName]] = frozenset()
WORKSPACE_MANAGERS: Final = frozenset({PermissionName.MANAGE_WORKSPACE})
USER_MANAGERS: Final = frozenset({PermissionName.MANAGE_USERS})
ROLE_MANAGERS: Final = frozenset({PermissionName.MANAGE_ROLE})
# Any of these shows what a workspace's vaults hold.
VAULT_VIEWERS: Final = frozenset(
    {PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}
)
# And PAYMENT_INIT, which vaults there are.
VAULT_READERS: Final = VAULT_VIEWERS | {PermissionName.PAYMENT_INIT}


Input = TypeVar("Input")
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Other = TypeVar("Other")


class Way(Enum):
    """Callers for whom a call is open that others are not; a call is closed to each unless it says so."""

    PROGRAM = "a service account, as far as its rights go"
    BOUND = "a session of an identity provider, for a call of the person's own"
    # Where members have to use the provider, a session with a password may still:
    UNLINKED = "link, unlink and leave"
    SIGNER = "sign, by the API, with the signer's own program"
    DECIDER = "decide on an owner's change"


@dataclass(frozen=True)
class SignedBody:
    """A body as it was sent, for a call whose sender signs it; the signature is in a header."""

    content: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Of a list. ``total`` counts all that match, or so many at least. ``has_more``: others follow the last
    item. ``after``: where they begin, if that is not after the last item.
    """

    items: list[Item]
    total: int
    has_more: bool
    after: str | None = None
    is_total_exact: bool = True

    def following(self, key: str) -> Any:
        """The ``after`` of the next page; None at the list's end. ``key``: the item's field for it."""
        if not self.has_more or self.after is not None:
            return self.after
        last = self.items[-1]
        return last.row_id if isinstance(last, Unreadable) else getattr(last, key)


@dataclass(frozen=True)
class Answers(Generic[Answer]):
    """An answer that is no shape: ``documented`` as the server gives it, ``bounded`` as a client reads it.
    ``key``: of a list in pages, the entry's field for ``after``.
    """

    documented: Any
    bounded: TypeAdapter[Any]
    key: str = ""


def few(item: type[Item]) -> Answers[list[Item | Unreadable]]:
    return Answers(Listed[item], TypeAdapter(Few[item], config=LATER))  # type: ignore[valid-type]  # at run time


def many(item: type[Item]) -> Answers[list[Item | Unreadable]]:
    return Answers(Listed[item], TypeAdapter(Many[item], config=LATER))  # type: ignore[valid-type]  # at run time


def pages(item: type[Item], *, by: str) -> Answers[Page[Item | Unreadable]]:
    rows = few(item)
    return Answers(rows.documented, rows.bounded, by)


def one_or_few(item: type[Item]) -> Answers[Item | list[Item | Unreadable]]:
    bounded: Any = item | Few[item]  # type: ignore[valid-type]  # at run time
    return Answers(item | Listed[item], TypeAdapter(bounded, config=LATER))  # type: ignore[valid-type]  # at run time


def either(one: type[Item], other: type[Other]) -> Answers[Item | Other]:
    union: Any = one | other
    return Answers(union, TypeAdapter(union, config=LATER))


@dataclass(frozen=True, eq=False)
class Call(Generic[Input, Answer]):
    """``takes``: the body of a POST, the query of a GET, or nothing. ``text``: for the OpenAPI document.

    ``needs``: an `Auth`, or permissions of which the caller must have one in the workspace that
    ``workspace_field`` of ``takes`` names (an empty set: be a member). ``changes``: a GET that writes.
    ``reads``: a POST that does not, though it counts as a change. ``creates``: ``Idempotency-Key`` is
    honoured. ``repeatable``: whether it is safe to send again where no answer came; None: where it only
    reads, or has such a key. ``refuses``: codes besides those that every such call has.

    ``long_poll``: a GET that waits for a change where it is asked to; its function answers `Watched`.

    ``second_person``: the title of the pending change; where the organisation has the rule, the call has to
    be requested and confirmed instead. ``always_two``: without the rule, too; another member of the workspace
    with one of ``needs`` confirms then. ``one_waits_for``: a field of ``takes``: one change at a time waits
    for the record that it names. ``cools``: it allows more, so that a confirmed change waits for the rule's
    hours; where that depends on what is stored, the function decides (`custody.server.calls.approval_of`).
    ``by_address``: it counts for the address that it comes from, too, before anything is done. ``reserved``:
    it has calls of its own, so that whoever used up theirs may still sign out, or freeze a vault.
    ``attempt``: the audit log's words for a refused attempt; of the others the title serves.
    """

    method: Literal["GET", "POST"]
    path: str
    takes: type[Input]
    answers: type[Answer] | Answers[Answer]
    text: str
    needs: Auth | frozenset[PermissionName]
    changes: bool = False
    reads: bool = False
    creates: bool = False
    workspace_field: str = "workspace_id"
    second_person: str = ""
    always_two: bool = False
    one_waits_for: str = ""
    cools: bool = False
    by_address: bool = False
    reserved: bool = False
    attempt: str = ""
    open_to: frozenset[Way] = frozenset()
    carries_psbt: bool = False
    long_poll: bool = False
    repeatable: bool | None = None
    refuses: tuple[ErrorCode, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.method == "POST" or self.changes

    @property
    def writes(self) -> bool:
        """Whether it runs under the write lock."""
        return self.is_change and not self.reads

    @property
    def shape(self) -> type[BaseModel] | None:
        """Of what is sent; None for a call that takes nothing."""
        return self.takes if issubclass(self.takes, BaseModel) else None

    @property
    def permissions(self) -> frozenset[PermissionName]:
        return self.needs if isinstance(self.needs, frozenset) else frozenset()

    @property
    def path_ids(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def answer_type(self) -> Any:
        return self.answers.documented if isinstance(self.answers, Answers) else self.answers

    @property
    def reader(self) -> type[Answer] | TypeAdapter[Any]:
        """What a client reads an answer with."""
        return self.answers.bounded if isinstance(self.answers, Answers) else self.answers

    @property
    def key(self) -> str:
        """Of a list in pages: the entry's field for ``after``."""
        return self.answers.key if isinstance(self.answers, Answers) else ""

    @cached_property
    def writer(self) -> TypeAdapter[Any]:
        """What the server writes an answer with."""
        return TypeAdapter(self.answer_type)
