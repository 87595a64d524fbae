"""Forwards: a member's own money, from the profile into a vault."""

from typing import Annotated

from pydantic import Field, StrictBool, StringConstraints, model_validator

from custody.schemas.common import (
    ApiNetwork,
    IntId,
    Request,
    TextId,
)
from custody.schemas.proposals import AmountSats

# BIP-173: an address of these networks is at most 90 characters.
ADDRESS_CHARACTERS = 90


class ForwardToVaultRequest(Request):
    """``POST /api/v1/forward-to-vault``: a fixed ``amount_sats``, or ``sweep`` for the whole balance; ``fee_sats`` with either.

    ``wallet_address`` says which of the caller's profiles is meant, as ``GET /api/v1/signing-profile-address`` gives it.
    """  # noqa: E501

    workspace_id: IntId
    vault_id: TextId
    network: ApiNetwork
    amount_sats: AmountSats | None = None
    fee_sats: AmountSats
    sweep: StrictBool = False
    allow_unconfirmed: StrictBool = False
    wallet_address: (
        Annotated[
            str,
            StringConstraints(strip_whitespace=True, min_length=1, max_length=ADDRESS_CHARACTERS),
            Field(examples=["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "ForwardToVaultRequest":
        if self.sweep is (self.amount_sats is not None):
            raise ValueError(
                "amount_sats: give an amount, or sweep: true for the whole balance, and not both"
            )
        return self
