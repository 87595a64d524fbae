"""What every section shares: the base shapes of answers, bodies and queries, the nullable wrappers, times,
and bounded strings.
"""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictInt,
    StringConstraints,
    model_validator,
)

from custody.common.text import UNSEEN_BELOW_U10000, require_seen

# PostgreSQL's and SQLite's widest integer: nothing that travels as an id or an amount may be wider.
MAX_INT64 = 2**63 - 1


def _digits(value: object) -> object:
    """Of what ``int()`` reads, digits alone: no sign, space or underscore, no digits of another alphabet."""
    if isinstance(value, str) and re.fullmatch("[0-9]+", value) is None:
        raise ValueError("a whole number is written in digits alone")
    return value


# A query's number comes as text: a query has no other form.
DIGITS = BeforeValidator(_digits)

# Below it every whole number is exact as a double, which is what JSON's 1.0 becomes (RFC 8259, section 6).
MAX_EXACT_FLOAT = 2**53

ApiNetwork = Literal["mainnet", "testnet"]
ChainName = Literal["mainnet", "testnet4", "signet", "regtest"]
CyclePeriod = Literal["W", "M"]
Priority = Literal["low", "medium", "high"]

IntId = Annotated[StrictInt, Field(ge=1, le=MAX_INT64)]
TextId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$"),
    Field(examples=["d41b2ccdb60d35cf8a4e66c0f8be7a0e"]),
]
# Names reach mails, logs, terminals and spreadsheets, and people pay by them: nothing that a reader cannot
# see (P50, S31). The joiners of Persian and Indic words and what follows an emoji are refused, too: two names
# that differ in them look the same, or nearly so, and UTS 39 (table 1) restricts them in identifiers.
_SEEN = AfterValidator(require_seen)
SEEN_PATTERN = {"pattern": f"^[^{UNSEEN_BELOW_U10000}]*$"}
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    _SEEN,
    Field(json_schema_extra=SEEN_PATTERN),
]
# A sentence beside a name; it may be empty.
Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=200),
    _SEEN,
    Field(json_schema_extra=SEEN_PATTERN),
]
Text = Annotated[str, StringConstraints(max_length=1_000)]
# RFC 5321: 64 for the local part, 255 for the domain. A bare addr-spec of RFC 5322, without a name, quotes,
# comments or a list (its "specials" are refused); the mailbox is proven by a mail.
_ADDRESS_PART = r"[^@\s<>()\[\],;:\\\"]+"
EmailAddress = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, to_lower=True, max_length=320, pattern=f"^{_ADDRESS_PART}@{_ADDRESS_PART}$"
    ),
    _SEEN,
    Field(examples=["ada@example.org"]),
]
# Plain decimal notation only: no sign, no exponent, at most eight places (P21).
DecimalText = Annotated[
    str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,17})(\.[0-9]{1,8})?$"), Field(examples=["0.25"])
]
# 2 MiB of PSBT, which is what a Coldcard Mk4 takes, in base64.
MAX_PSBT_BASE64 = 2_796_204
PsbtBase64 = Annotated[
    str, StringConstraints(min_length=8, max_length=MAX_PSBT_BASE64), Field(examples=["cHNidP8BAH0CAAAAAQ=="])
]

# What an answer may hold. A reader checks the meaning of a value later; these are the sizes that it can store
# and show, so they are wider than what the platform sends. tests/custody/schemas/test_bounds.py fails on an
# answer without them.
T = TypeVar("T")
Int64 = Annotated[int, Field(ge=-MAX_INT64 - 1, le=MAX_INT64)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
# 21 million BTC in satoshis.
MAX_SATS = 2_100_000_000_000_000
Sats = Annotated[int, Field(ge=-MAX_SATS, le=MAX_SATS)]
# An id, a hash, a name, an address, a path, an amount: the longest is an e-mail address of 320 characters.
Label = Annotated[str, StringConstraints(max_length=400)]
# A sentence, a descriptor of 15 keys, a URL.
Prose = Annotated[str, StringConstraints(max_length=10_000)]
PsbtText = Annotated[str, StringConstraints(max_length=MAX_PSBT_BASE64)]
# A standard transaction has 400,000 weight units: as many bytes at most.
TransactionHex = Annotated[str, StringConstraints(max_length=2 * 400_000)]
# Signers, recipients, roles, a page of proposals; and what grows with a workspace's age. The first bad entry
# ends the reading: an error for each of a hundred thousand would take more memory than the list.
Few = Annotated[list[T], Field(max_length=1_000, fail_fast=True)]
Many = Annotated[list[T], Field(max_length=100_000, fail_fast=True)]
# For the adapter of a list: built when the first list is read, which many programs never do.
LATER = ConfigDict(defer_build=True)


def _as_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone: write it with a Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("this time is not within the years 1 to 9999") from None


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and ``Z``, the only form the platform writes."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[
    datetime, AfterValidator(_as_utc), PlainSerializer(format_time, return_type=str, when_used="json")
]


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _whole(value: object) -> object:
    """1.0 as 1. From 2**53 on such a number may not be the one that was written: it stays, and is refused."""
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        # One level: an object within it is a shape of its own, or refused.
        return {name: each if isinstance(each, dict | list) else _whole(each) for name, each in value.items()}
    is_exact = isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_FLOAT
    return int(value) if is_exact else value  # type: ignore[call-overload]  # a float, by the line above


# A daemon, or a command that asks one question, needs few of them: each is built at its first use.
class Shape(BaseModel):
    """An answer: frozen, tolerant of fields that a newer platform adds."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True, defer_build=True
    )


class Unreadable(Shape):
    """In a list, in the place of an entry whose stored row cannot be shown: its id, under the name that the
    entry's would have, and why.
    """

    model_config = ConfigDict(extra="allow")

    unreadable: Prose

    @property
    def row_id(self) -> str | int:
        identifier: str | int = next(iter((self.model_extra or {"": "?"}).values()))
        return identifier


# What the platform answers as a list.
Listed = list[T | Unreadable]


class Request(BaseModel):
    """A body that a caller sends: an unknown field is a mistake that must not pass in silence."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, data: object) -> object:
        """JSON can write half a character and U+0000, which UTF-8 and PostgreSQL cannot store; and a whole number with
        a point, as JSON Schema allows (nested ones: theirs).
        """  # noqa: E501
        if not isinstance(data, dict):
            return data
        for value in data.values():
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str) and _UNSTORABLE.search(text):
                    raise ValueError("a text holds U+0000 or half of a surrogate pair")
        return {name: _whole(value) for name, value in data.items()}


class WorkspaceRequest(Request):
    """A body about a workspace. Alone: where the call needs no more."""

    workspace_id: IntId


class VaultRequest(WorkspaceRequest):
    """A body about a vault of the workspace. Alone: where the call needs no more."""

    vault_id: TextId


# In a query a number comes as text: it has no other form.
QueryId = Annotated[int, Field(ge=1, le=MAX_INT64), DIGITS]
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(value: object) -> object:
    """One form only: pydantic also reads a number of seconds as a date, and would search another year."""
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("a day is written YYYY-MM-DD, and counts in UTC")
    return value


Day = Annotated[date, BeforeValidator(_day)]


def _yes(value: object) -> object:
    """Pydantic takes ``1``, ``yes`` and ``on`` for true as well."""
    if not isinstance(value, bool) and value not in ("true", "false"):
        raise ValueError("a yes is written true, a no false")
    return value


Yes = Annotated[bool, BeforeValidator(_yes)]
# The most entries that one page of a list has.
MAX_ITEMS = 500
PageSize = Annotated[int, Field(ge=1, le=MAX_ITEMS), DIGITS]
SearchText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class DaysQuery(Request):
    """Days are inclusive, in UTC."""

    from_day: Day | None = None
    to_day: Day | None = None

    @model_validator(mode="after")
    def _days_in_order(self) -> Self:
        if self.from_day and self.to_day and self.from_day > self.to_day:
            raise ValueError("the first day is later than the last: change the two")
        return self


class WorkspaceQuery(Request):
    workspace_id: QueryId


class VaultQuery(WorkspaceQuery):
    vault_id: TextId


class NamedApprover(Shape):
    """Of whom an approval has to come: ``key`` is ``role:5`` or ``user:7``. ``user_ids``: the vault's signers who can give it now."""  # noqa: E501

    key: Label
    name: Label | None = None
    user_ids: Few[Label] = Field(default_factory=list)

    @property
    def words(self) -> str:
        is_role = self.key.startswith("role:")
        return f"the role {self.name}" if is_role and self.name else self.name or self.key.replace(":", " ")


def build_shapes() -> None:
    """Build all that are imported so far: a server needs them all. What FastAPI makes of them is built with
    its routes, too: built later, it would warn of aliases that are FastAPI's own.
    """
    bases: list[type[BaseModel]] = [Shape, Request]
    while bases:
        shape = bases.pop()
        shape.model_config["defer_build"] = False
        shape.model_rebuild()
        bases += shape.__subclasses__()


class Nullable(Shape, Generic[T]):
    """The specification's ``{"String": …, "Valid": …}``: without ``Valid`` the other means nothing."""

    valid: bool = Field(alias="Valid")

    @classmethod
    def of(cls, value: T | None) -> Self:
        return cls.model_validate({"valid": False} if value is None else {"valid": True, cls._name(): value})

    @property
    def value(self) -> T | None:
        return getattr(self, self._name()) if self.valid else None

    @classmethod
    def _name(cls) -> str:
        return next(name for name in cls.model_fields if name != "valid")


class NullString(Nullable[str]):
    string: Prose = Field(default="", alias="String")


class NullTime(Nullable[datetime]):
    time: Timestamp = Field(default=datetime(1970, 1, 1, tzinfo=UTC), alias="Time")


class NullInt64(Nullable[int]):
    int64: Annotated[StrictInt, Field(ge=-MAX_INT64 - 1, le=MAX_INT64)] = Field(default=0, alias="Int64")


def is_absent(value: object) -> bool:
    """For ``exclude_if``: the answer leaves the field out."""
    return value is None


class Done(Shape):
    """The answer of a call that changes something and has nothing else to tell."""

    success: bool = True
