"""What a vault's coins allow: the most that one payment may send."""

from typing import Annotated, Literal

from pydantic import Field

from custody.schemas.common import Count, Label, Priority, Prose, Request, Sats, Shape, TextId
from custody.schemas.proposals import MAX_RECIPIENTS, FeeRateText, OpReturnText, RecipientText
from custody.schemas.queries import QueryId

# What keeps it from being more: all coins are in it; no more of them fit into one transaction; a limit; or it
# is nothing, because what is left would be dust.
Bound = Literal["coins", "transaction", "role-limit", "vault-limit", "dust"]


class MaxSendQuery(Request):
    """``GET /api/v1/max-send``. ``recipients`` are addresses, each given by its own parameter; the rest as in ``create-psbt``."""  # noqa: E501

    workspace_id: QueryId
    wallet_id: TextId
    recipients: Annotated[list[RecipientText], Field(min_length=1, max_length=MAX_RECIPIENTS)]
    op_return: OpReturnText | None = None
    priority: Priority | None = None
    fee_rate: FeeRateText | None = None


class MaxSend(Shape):
    """The most that the recipients can be sent together by one ``create-psbt``: ``amount_sats``, at a fee of ``fee_sats``. It
    reserves nothing. ``words`` says why it is not more; ``bound_by`` the same for a program.

    The vault's unspent coins, in satoshi, each counted once: ``free_sats`` could be spent; ``reserved_sats`` are held by
    proposals; ``waiting_sats`` are deposits without a confirmation, or mined less than 100 blocks ago; ``too_small_sats`` cost
    more than they hold, at this rate; ``kept_sats`` is the coin that stays for the vault's tokens. The two limits say what is
    left for amount and fee; null where the payment counts for none, because it stays in the vault.
    """  # noqa: E501

    amount_sats: Sats
    fee_sats: Sats
    fee_rate: Label
    inputs: Count
    bound_by: Bound
    words: Prose
    free_sats: Sats
    reserved_sats: Sats
    waiting_sats: Sats
    too_small_sats: Sats
    kept_sats: Sats
    role_left_sats: Sats | None = None
    vault_left_sats: Sats | None = None
    # What each priority pays now, in sat/vB.
    priority_rates: Annotated[dict[Priority, Label], Field(max_length=3)] = Field(default_factory=dict)
