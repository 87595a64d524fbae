"""What reading calls take in their query string. Text becomes numbers here: a query has no other way to say
them.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from custody.schemas.common import (
    MAX_INT64,
    ApiNetwork,
    Request,
    TextId,
)
from custody.schemas.proposals import ProposalStatus

QueryId = Annotated[int, Field(ge=1, le=MAX_INT64)]
SearchText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class WorkspaceQuery(Request):
    workspace_id: QueryId


class ProfileQuery(Request):
    """``GET /api/v1/signing-profile-address``: of the active key, or of another one of the caller's own by ``key_id``."""  # noqa: E501

    network: ApiNetwork
    key_id: TextId | None = None


MAX_PROPOSALS = 500


class PsbtQuery(Request):
    """``GET /api/v1/psbt``: one by ``psbt_id``, or a workspace's, newest last unless ``order`` says otherwise; ``after`` is the
    last id seen. ``awaiting``: those that the caller has to decide. ``vault_id``: those of that vault. ``search``: those that
    have each of its words in their title or in the address book's name of whom they pay, as the beginning of an address,
    a txid or an id, or as an amount in BTC or satoshis. A search looks at some thousand proposals at a time: with ``Link``
    it goes on from there, whether it found any. ``tx_type``: proofs of control alone.
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
    limit: Annotated[int, Field(ge=1, le=MAX_PROPOSALS)] = 100

    @model_validator(mode="after")
    def _one_or_many(self) -> "PsbtQuery":
        if self.psbt_id is None and self.workspace_id is None:
            raise ValueError("give psbt_id for one proposal, or workspace_id for a list")
        return self
