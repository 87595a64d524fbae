"""The query strings of reading calls. Here a number comes as text: a query has no other form."""

import re
from datetime import date
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from custody.schemas.common import (
    DIGITS,
    MAX_INT64,
    ApiNetwork,
    Request,
    TextId,
)

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
            raise ValueError("from_day is later than to_day: change the two")
        return self


class WorkspaceQuery(Request):
    workspace_id: QueryId


class VaultQuery(WorkspaceQuery):
    vault_id: TextId


class ProfileQuery(Request):
    """``GET /api/v1/signing-profile-address``: of the active key, or of another one of the caller's own by ``key_id``."""  # noqa: E501

    network: ApiNetwork
    key_id: TextId | None = None
