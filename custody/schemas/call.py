"""A call of the platform, declared once: what it takes and answers, who may make it, and its words.

The server serves it (`custody.server.calls`), the client's methods are written from it
(``tools/client_calls.py``), and the console and the command line read their words here. A declaration knows
nothing of the server.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter

from custody.schemas.common import LATER, Few, Listed, Many, Unreadable
from custody.schemas.errors import ErrorCode
from custody.schemas.users import PermissionName

Input = TypeVar("Input")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Auth(Enum):
    """What a caller needs where the call names no workspace."""

    OPEN = "open"  # nothing: sign-in itself
    SIGNED_IN = "signed in"  # a session: the caller's own records


class Way(Enum):
    """Callers for whom a call is open that others are not; a call is closed to each unless it says so."""

    PROGRAM = "a service account, as far as its rights go"
    BOUND = "a session of an identity provider, for a call of the person's own"
    # Where members have to use the provider, a session with a password may still:
    UNLINKED = "link, unlink and leave"
    SIGNER = "sign, by the API, with the signer's own program"
    DECIDER = "decide on an owner's change"


ANY_MEMBER: Final[frozenset[PermissionName]] = frozenset()


@dataclass(frozen=True)
class Rows(Generic[Answer]):
    """An answer that is a list, of which a client reads so many entries at most."""

    answers: Any
    bounded: TypeAdapter[Any]


def few(item: type[Item]) -> Rows[list[Item | Unreadable]]:
    return Rows(Listed[item], TypeAdapter(Few[item], config=LATER))  # type: ignore[valid-type]  # at run time


def many(item: type[Item]) -> Rows[list[Item | Unreadable]]:
    return Rows(Listed[item], TypeAdapter(Many[item], config=LATER))  # type: ignore[valid-type]  # at run time


@dataclass(frozen=True, eq=False)
class Call(Generic[Input, Answer]):
    """``takes``: the body of a POST, the query of a GET, or nothing. ``text``: for the OpenAPI document.

    ``needs``: an `Auth`, or permissions of which the caller must have one in the workspace that
    ``workspace_field`` of ``takes`` names (an empty set: be a member). ``changes``: a GET that writes.
    ``creates``: ``Idempotency-Key`` is honoured. ``repeatable``: a change that is safe to send again.
    ``refuses``: codes besides those that every such call has.

    ``second_person``: the title of the pending change; where the organisation has the rule, the call has to
    be requested and confirmed instead. ``cools``: it allows more, so that a confirmed change waits for the
    rule's hours. ``attempt``: the audit log's words for a refused attempt; of the others the title serves.
    """

    method: Literal["GET", "POST"]
    path: str
    takes: type[Input]
    answers: type[Answer] | Rows[Answer]
    text: str
    needs: Auth | frozenset[PermissionName]
    changes: bool = False
    creates: bool = False
    workspace_field: str = "workspace_id"
    second_person: str = ""
    cools: bool = False
    attempt: str = ""
    open_to: frozenset[Way] = frozenset()
    carries_psbt: bool = False
    repeatable: bool = False
    refuses: tuple[ErrorCode, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.method == "POST" or self.changes

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
        return self.answers.answers if isinstance(self.answers, Rows) else self.answers

    @property
    def reader(self) -> type[Answer] | TypeAdapter[Any]:
        """What a client reads an answer with."""
        return self.answers.bounded if isinstance(self.answers, Rows) else self.answers

    @cached_property
    def writer(self) -> TypeAdapter[Answer]:
        """What the server writes an answer with."""
        return TypeAdapter(self.answer_type)
