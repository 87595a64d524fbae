"""What is sent otherwise than by ``create-psbt``: all that a replaced vault holds, and a member's own money
from the signing profile into a vault. And the most that a vault may send now.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, model_validator

from custody.schemas.call import VAULT_READERS, WORKSPACE_MANAGERS, Call, Way
from custody.schemas.common import (
    DIGITS,
    ApiNetwork,
    Count,
    Label,
    Many,
    Priority,
    Prose,
    Sats,
    Shape,
    TextId,
    VaultQuery,
    VaultRequest,
    WorkspaceQuery,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.proposals import (
    FORWARDERS,
    MAX_COINS,
    MAX_RECIPIENTS,
    AddressText,
    AmountSats,
    Coins,
    CreatePsbtResponse,
    FeeRateText,
    OpReturnText,
    PsbtPreview,
    RecipientText,
)

# What keeps it from being more: all coins are in it; no more of them fit into one transaction; nodes would
# not take more before the next block; a limit; or it is nothing, because what is left would be dust.
Bound = Literal["coins", "transaction", "nodes", "role-limit", "vault-limit", "dust"]


class MaxSendQuery(WorkspaceQuery):
    """``recipients`` are addresses, each given by its own parameter; the rest as in ``create-psbt``."""

    wallet_id: TextId
    recipients: Annotated[list[RecipientText], Field(min_length=1, max_length=MAX_RECIPIENTS)]
    op_return: OpReturnText | None = None
    priority: Priority | None = None
    fee_rate: FeeRateText | None = None


class MaxSend(Shape):
    """The most that the recipients can be sent together by one ``create-psbt``: ``amount_sats``, at a fee of ``fee_sats``. It
    reserves nothing. ``words`` says why it is not more; ``bound_by`` the same for a program.

    The vault's unspent coins, in satoshi, each counted once: ``free_sats`` could be spent; ``locked_sats`` are locked by
    proposals; ``waiting_sats`` are deposits without a confirmation, or mined less than 100 blocks ago; ``too_small_sats`` cost
    more than they hold, at this rate; ``kept_sats`` is the coin that stays for the vault's tokens; ``set_aside_sats`` are in coins
    that a member set aside. The two limits say what is
    left for amount and fee; of a payment that stays in the vault, for the fee alone.
    """  # noqa: E501

    amount_sats: Sats
    fee_sats: Sats
    fee_rate: Label
    inputs: Count
    bound_by: Bound
    words: Prose
    free_sats: Sats
    locked_sats: Sats
    waiting_sats: Sats
    too_small_sats: Sats
    kept_sats: Sats
    set_aside_sats: Sats
    role_left_sats: Sats
    vault_left_sats: Sats
    # In sat/vB: the lowest ``fee_rate`` now, where a node says so its own minimum; what each priority pays.
    least_rate: Label
    priority_rates: Annotated[dict[Priority, Label], Field(max_length=3)] = Field(default_factory=dict)


class ConsolidationQuery(VaultQuery):
    """Of the ``coins`` smallest coins. ``fee_rate`` is in sat/vB, and without one that of the priority ``low``."""  # noqa: E501

    coins: Annotated[int, Field(ge=2, le=MAX_COINS), DIGITS] = MAX_COINS
    fee_rate: FeeRateText | None = None


class Consolidation(Shape):
    """What ``create-psbt`` is to be sent: ``address`` of the vault as the recipient, ``coins``, ``fee_rate``, and ``sweep_coins``. It costs
    ``fee_sats``; to spend the coins as they are would cost ``later_fee_sats`` at ``later_rate``, the estimate for two blocks.
    ``saved_sats`` counts that the one coin is spent later, too.
    """  # noqa: E501

    address: Label
    coins: Many[Label]
    held_sats: Sats
    fee_sats: Sats
    fee_rate: Label
    later_rate: Label
    later_fee_sats: Sats
    saved_sats: Sats
    words: Prose


def one_coin_of(vault_id: str, address: str, coins: Sequence[str], fee_rate: str) -> dict[str, Any]:
    """What ``create-psbt`` is sent for a consolidation."""
    said = f"Makes one coin of the {len(coins)} smallest."
    return {
        "wallet_id": vault_id, "tx_type": "send", "recipients": [address], "sweep_coins": True,
        "coins": [*coins], "fee_rate": fee_rate, "description": said,
    }  # fmt: skip


class SweepVaultRequest(VaultRequest):
    """Of a vault that is replaced. ``fee_rate`` is in sat/vB, decimal."""

    priority: Priority | None = None
    fee_rate: FeeRateText | None = None


class SweptVault(Shape):
    """One proposal, or several where one transaction does not take all coins. What is set aside stays: ``set_aside_sats``."""  # noqa: E501

    psbt_ids: Many[Label]
    set_aside_sats: Sats


class ForwardToVaultRequest(VaultRequest):
    """A fixed ``amount_sats``, or ``sweep`` for the whole balance; ``fee_sats`` with either.

    ``wallet_address`` says which of the caller's profiles is meant, as ``signing-profile-address`` gives it. ``coins``: those that
    ``preview-forward`` showed; where others would be spent by now, it is refused.
    """  # noqa: E501

    network: ApiNetwork
    coins: Coins | None = None
    amount_sats: AmountSats | None = None
    fee_sats: AmountSats
    sweep: StrictBool = False
    allow_unconfirmed: StrictBool = False
    wallet_address: AddressText | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "ForwardToVaultRequest":
        if self.sweep is (self.amount_sats is not None):
            raise ValueError(
                "amount_sats: give an amount, or sweep: true for the whole balance, and not both"
            )
        return self


MAX_SEND = Call(
    "GET", "/api/v1/max-send", MaxSendQuery, MaxSend,
    "The most that the caller can send to the recipients in one payment now, fee beside it, and why it is "
    "not more.\n``create-psbt`` accepts it as long as nothing else happens. It reserves nothing.",
    VAULT_READERS, attempt="see the limits", open_to=frozenset({Way.PROGRAM}),
    refuses=(
        ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.NOT_IN_ADDRESS_BOOK, ErrorCode.POLICY_UNAVAILABLE,
        ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN, ErrorCode.WRONG_NETWORK_ADDRESS,
    ),
)  # fmt: skip
CONSOLIDATION = Call(
    "GET", "/api/v1/consolidation", ConsolidationQuery, Consolidation,
    "Which of a vault's smallest coins to make one of now, and what that saves. It reserves and proposes "
    "nothing.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN),
)  # fmt: skip
SWEEP_VAULT = Call(
    "POST", "/api/v1/sweep-vault", SweepVaultRequest, SweptVault,
    "Proposes to move all that is free of a replaced vault into its replacement, in as many proposals as its "
    "coins need. Call it\nagain for what comes later.",
    WORKSPACE_MANAGERS, attempt="sweep a replaced vault",
    refuses=(
        ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.DUST, ErrorCode.INSUFFICIENT_FUNDS, ErrorCode.LOCKED_FUNDS,
        ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN,
    ),
)  # fmt: skip
_FORWARDING: Final = (
    ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.DUST, ErrorCode.INSUFFICIENT_FUNDS, ErrorCode.KEY_REVOKED,
    ErrorCode.LOCKED_FUNDS, ErrorCode.STATE_CONFLICT, ErrorCode.WALLET_ADDRESS_MISMATCH,
)  # fmt: skip
FORWARD_TO_VAULT = Call(
    "POST", "/api/v1/forward-to-vault", ForwardToVaultRequest, CreatePsbtResponse,
    "Proposes to move the caller's own money, from their signing profile, into a vault. Only the caller "
    "signs it, through\n``sign-psbt``; their signature finalises it, and it is broadcast.",
    FORWARDERS, creates=True, attempt="forward their own money", refuses=_FORWARDING,
)  # fmt: skip
PREVIEW_FORWARD = Call(
    "POST", "/api/v1/preview-forward", ForwardToVaultRequest, PsbtPreview,
    "What ``forward-to-vault`` would make of the same request now: its coins, change and fee, and the PSBT "
    "that would be\nsigned. Nothing is stored, and no coin is held.",
    FORWARDERS, reads=True, attempt="preview a forward of their own money", refuses=_FORWARDING,
)  # fmt: skip
