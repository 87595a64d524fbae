"""The query strings of reading calls. Here a number comes as text: a query has no other form."""

import re
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from custody.schemas.common import (
    DIGITS,
    MAX_INT64,
    ApiNetwork,
    Request,
    TextId,
)
from custody.schemas.proposals import ProposalStatus

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


class ProfileQuery(Request):
    """``GET /api/v1/signing-profile-address``: of the active key, or of another one of the caller's own by ``key_id``."""  # noqa: E501

    network: ApiNetwork
    key_id: TextId | None = None


MAX_PROPOSALS = 500


class PsbtQuery(DaysQuery):
    """``GET /api/v1/psbt``: one by ``psbt_id``, or a workspace's, newest last unless ``order`` says otherwise; ``after`` is the
    last id seen. ``awaiting``: those that the caller has to decide. ``vault_id``: those of that vault. ``search``: those that
    have each of its words in their title or in the address book's name of whom they pay, as the beginning of an address,
    a txid or an id, or as an amount in BTC or satoshis. A search looks at some thousand proposals at a time: with ``Link``
    it goes on from there, whether it found any. ``tx_type``: proofs of control alone. ``from_day``, ``to_day``: when they were
    proposed, inclusive, in UTC.
    """  # noqa: E501

    psbt_id: TextId | None = None
    workspace_id: QueryId | None = None
    status: ProposalStatus | None = None
    awaiting: Literal["me"] | None = None
    vault_id: TextId | None = None
    tx_type: Literal["proof"] | None = None
    order: Literal["oldest", "newest"] = "oldest"
    after: TextId | None = None
    search: SearchText | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PROPOSALS), DIGITS] = 100

    @model_validator(mode="after")
    def _one_or_many(self) -> "PsbtQuery":
        if self.psbt_id is None and self.workspace_id is None:
            raise ValueError("give psbt_id for one proposal, or workspace_id for a list")
        return self
