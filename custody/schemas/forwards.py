"""Forwards: a member's own money, from the signing profile into a vault."""

from typing import Annotated, Final

from pydantic import Field, StrictBool, StringConstraints, model_validator

from custody.schemas.call import Call
from custody.schemas.common import ApiNetwork, IntId, Request, TextId
from custody.schemas.errors import ErrorCode
from custody.schemas.proposals import (
    ADDRESS_CHARACTERS,
    FORWARDERS,
    AmountSats,
    Coins,
    CreatePsbtResponse,
    PsbtPreview,
)


class ForwardToVaultRequest(Request):
    """``POST /api/v1/forward-to-vault``: a fixed ``amount_sats``, or ``sweep`` for the whole balance; ``fee_sats`` with either.

    ``wallet_address`` says which of the caller's profiles is meant, as ``GET /api/v1/signing-profile-address`` gives it. ``coins``:
    those that ``POST /api/v1/preview-forward`` showed; where others would be spent by now, it is refused.
    """  # noqa: E501

    workspace_id: IntId
    vault_id: TextId
    network: ApiNetwork
    coins: Coins | None = None
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


_FORWARDING: Final = (
    ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.DUST, ErrorCode.INSUFFICIENT_FUNDS, ErrorCode.KEY_REVOKED,
    ErrorCode.LOCKED_FUNDS, ErrorCode.STATE_CONFLICT, ErrorCode.WALLET_ADDRESS_MISMATCH,
)  # fmt: skip
FORWARD_TO_VAULT = Call(
    "POST", "/api/v1/forward-to-vault", ForwardToVaultRequest, CreatePsbtResponse,
    "Proposes to move the caller's own money, from their signing profile, into a vault. Only the caller "
    "signs it, through\n"
    "``sign-psbt``; their signature finalises it, and it is broadcast.",
    FORWARDERS, creates=True, attempt="forward their own money", refuses=_FORWARDING,
)  # fmt: skip
PREVIEW_FORWARD = Call(
    "POST", "/api/v1/preview-forward", ForwardToVaultRequest, PsbtPreview,
    "What ``forward-to-vault`` would make of the same request now: its coins, change and fee, and the PSBT "
    "that would be\n"
    "signed. Nothing is stored, and no coin is held.",
    FORWARDERS, reads=True, attempt="preview a forward of their own money", refuses=_FORWARDING,
)  # fmt: skip
