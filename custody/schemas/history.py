"""A vault's movements, with the balance after each; and its unspent coins."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from custody.schemas.call import VAULT_READERS, Call, Way
from custody.schemas.common import (
    DIGITS,
    MAX_SATS,
    Count,
    Few,
    Label,
    PageSize,
    Prose,
    Sats,
    Shape,
    Timestamp,
    Unreadable,
    VaultQuery,
    Yes,
)
from custody.schemas.errors import ErrorCode

# Of one movement; the rest are counted.
MAX_OUTPUTS = 20

CursorText = Annotated[str, StringConstraints(pattern=r"^[0-9a-f._]{1,120}$")]
TxidText = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
AddressText = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[0-9A-Za-z]+$")]
LabelText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
SatsQuery = Annotated[int, Field(ge=0, le=MAX_SATS), DIGITS]


class MovementKind(StrEnum):
    """What a transaction is to a vault. ``consolidation``: it pays the vault alone, and costs the fee.
    ``token``: it makes or calls a token. ``outside``: it spends the vault's coins, and nobody proposed it here.
    """  # noqa: E501

    DEPOSIT = "deposit"
    FORWARD = "forward"
    PAYMENT = "payment"
    CONSOLIDATION = "consolidation"
    TOKEN = "token"  # noqa: S105 - no password
    OUTSIDE = "outside"


MovementStatus = Literal["confirmed", "pending"]
MovementOrder = Literal["newest", "oldest"]


class VaultPage(VaultQuery):
    """A page of what a vault has, by its cursor, with bounds of the amount."""

    limit: PageSize = 100
    min_sats: SatsQuery | None = None
    max_sats: SatsQuery | None = None
    address: AddressText | None = None

    @model_validator(mode="after")
    def _amounts_in_order(self) -> Self:
        if self.min_sats is not None and self.max_sats is not None and self.min_sats > self.max_sats:
            raise ValueError("min_sats is more than max_sats: change the two")
        return self


class VaultHistoryQuery(VaultPage):
    """``GET /api/v1/vault-history``. ``cursor`` is the last answer's ``next_cursor``. ``from_time`` is inclusive, ``to_time`` is
    not. ``min_sats`` and ``max_sats`` bound what came or went, whichever way. ``label`` is part of a proposal's title, or of a
    name in the address book. ``with_replaced``: of the vaults in whose place it is, too, as of one vault. A sweep is then one
    movement, which costs the fee; filters see it as the payment of the vault that it left.
    """  # noqa: E501

    order: MovementOrder = "newest"
    cursor: CursorText | None = None
    kind: MovementKind | None = None
    status: MovementStatus | None = None
    from_time: Timestamp | None = None
    to_time: Timestamp | None = None
    label: LabelText | None = None
    txid: TxidText | None = None
    with_replaced: Yes = False

    @model_validator(mode="after")
    def _times_in_order(self) -> Self:
        if self.from_time is not None and self.to_time is not None and self.from_time > self.to_time:
            raise ValueError("from_time is later than to_time: change the two")
        return self


class MovementOutput(Shape):
    """What was paid to whom. ``vout`` where it paid the vault. ``label`` is the name in the address book, for those who may
    read the book.
    """  # noqa: E501

    address: Label
    amount_sats: Sats
    vout: Count | None = None
    label: Label | None = None


class VaultMovement(Shape):
    """One transaction, as the vault sees it. ``amount_sats`` is what it brought less what it took, fee included.

    ``at`` is the time of its block; while it is pending, when it was first seen. ``balance_sats`` is the vault's confirmed balance
    after it; null while it is pending, for it has no place in the chain yet. ``title`` is the proposal's description.
    ``replaces_psbt_id``: the version whose place it took. Up to 20 ``outputs``; ``more_outputs`` counts the rest.
    """  # noqa: E501

    txid: Label
    kind: MovementKind
    status: MovementStatus
    at: Timestamp
    first_seen_at: Timestamp
    height: Count | None
    block_hash: Label | None
    confirmations: Count
    received_sats: Sats
    sent_sats: Sats
    amount_sats: Sats
    fee_sats: Sats | None
    balance_sats: Sats | None
    outputs: Few[MovementOutput]
    more_outputs: Count = 0
    psbt_id: Label | None = None
    title: Prose | None = None
    created_by: Label | None = None
    created_by_name: Label | None = None
    replaces_psbt_id: Label | None = None


class VaultHistory(Shape):
    """A page. It may be shorter than its limit, even empty, where a filter leaves much out: ``next_cursor`` is null at the end."""  # noqa: E501

    vault_id: Label
    tip_height: Count
    movements: Few[VaultMovement]
    next_cursor: Label | None
    # Those of the page that cannot be shown.
    unreadable: Few[Unreadable] = Field(default_factory=list)


class CoinState(StrEnum):
    """What a coin may be used for. ``reserved``: a proposal holds it. ``unconfirmed``: in no block, and not the vault's own
    change. ``immature``: of a block's reward, which may be spent after 100 blocks.
    """  # noqa: E501

    SPENDABLE = "spendable"
    RESERVED = "reserved"
    UNCONFIRMED = "unconfirmed"
    IMMATURE = "immature"


CoinCursorText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,16}_[0-9a-f]{64}_[0-9]{1,10}$")]


class VaultCoinsQuery(VaultPage):
    """``GET /api/v1/vault-coins``: the largest first. ``cursor`` is the last answer's ``next_cursor``."""

    cursor: CoinCursorText | None = None
    state: CoinState | None = None


class VaultCoin(Shape):
    """An output that the vault can spend, now or later. ``psbt_id``: the proposal that holds it. ``is_change``: the vault paid
    it to itself.
    """  # noqa: E501

    txid: Label
    vout: Count
    amount_sats: Sats
    address: Label
    is_change: bool
    height: Count | None
    confirmations: Count
    first_seen_at: Timestamp
    state: CoinState
    psbt_id: Label | None = None


class VaultCoins(Shape):
    """A page. It may be shorter than its limit, even empty, where a filter leaves much out: ``next_cursor`` is null at the end.
    Of a frozen vault nothing is spent, whatever the coins' states are.
    """  # noqa: E501

    vault_id: Label
    tip_height: Count
    is_frozen: bool
    coins: Few[VaultCoin]
    next_cursor: Label | None
    # Those of the page that cannot be shown.
    unreadable: Few[Unreadable] = Field(default_factory=list)


VAULT_HISTORY = Call(
    "GET", "/api/v1/vault-history", VaultHistoryQuery, VaultHistory,
    "A vault's movements with the balance after each, the newest or the oldest first. Follow "
    "``next_cursor``.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM, Way.SIGNER}),
    refuses=(ErrorCode.WRONG_NETWORK_ADDRESS,),
)  # fmt: skip
VAULT_COINS = Call(
    "GET", "/api/v1/vault-coins", VaultCoinsQuery, VaultCoins,
    "A vault's unspent coins, the largest first: where each is, what it may be used for, which "
    "proposal holds it.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.WRONG_NETWORK_ADDRESS,),
)  # fmt: skip
