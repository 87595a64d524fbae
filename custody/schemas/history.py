"""A vault's movements, with the balance after each; and its unspent coins."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from custody.schemas.call import VAULT_READERS, WORKSPACE_MANAGERS, Call, Way
from custody.schemas.common import (
    DIGITS,
    MAX_SATS,
    Count,
    Done,
    Few,
    Label,
    Name,
    PageSize,
    Prose,
    Sats,
    Shape,
    Timestamp,
    Unreadable,
    VaultQuery,
    VaultRequest,
    Yes,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.proposals import OutpointText

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
            raise ValueError("the smallest amount is more than the largest: change the two")
        return self


class VaultHistoryQuery(VaultPage):
    """``cursor`` is the last answer's ``next_cursor``. ``from_time`` is inclusive, ``to_time`` is not. ``min_sats`` and ``max_sats``
    bound what came or went, whichever way. ``label`` is part of a proposal's title, or of a name in the address book.
    ``with_replaced``: of the vaults in whose place it is, too, as of one vault. A sweep is then one movement, which costs the fee;
    filters see it as the payment of the vault that it left.
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
            raise ValueError("the first day is later than the last: change the two")
        return self


class MovementOutput(Shape):
    """What was paid to whom. ``vout`` where it paid the vault. ``label`` is the name of the workspace's vault that is
    paid, or in the address book, for those who may read the book.
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


class VaultRows(Shape):
    """A page. It may be shorter than its limit, even empty, where a filter leaves much out: ``next_cursor`` is null at the end.
    ``unreadable``: those of the page that cannot be shown.
    """  # noqa: E501

    vault_id: Label
    next_cursor: Label | None
    unreadable: Few[Unreadable] = Field(default_factory=list)


class VaultHistory(VaultRows):
    tip_height: Count
    movements: Few[VaultMovement]


MonthText = Annotated[
    str, StringConstraints(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$"), Field(examples=["2025-11"])
]
PlaceText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}\.[0-9]{1,10}$")]


class VaultStatementQuery(VaultQuery):
    """``month`` is like 2026-11, in UTC. ``cursor`` is the last answer's ``next_cursor``."""

    month: MonthText
    limit: PageSize = 100
    cursor: PlaceText | None = None


class VaultStatement(VaultRows):
    """A closed month, and a page of its ``count`` movements, the oldest first. ``opening_sats`` is the confirmed balance at the
    block ``opening_height``, the last one before the month in which something moved, and at all up to the month's first movement;
    the same for the closing balance. Of what moved, ``came_sats`` less ``went_sats`` is the difference. A block is of the month
    that its header says, but never of an earlier month than a block before it that holds a movement of the vault.
    """  # noqa: E501

    vault_name: Prose
    month: Label
    from_time: Timestamp
    to_time: Timestamp
    opening_height: Count
    opening_sats: Sats
    came_sats: Sats
    went_sats: Sats
    closing_height: Count
    closing_sats: Sats
    count: Count
    movements: Few[VaultMovement]


class CoinState(StrEnum):
    """What a coin may be used for. ``locked``: a proposal holds it. ``unconfirmed``: in no block, and not the vault's own
    change. ``immature``: of a block's reward, which may be spent after 100 blocks. ``set-aside``: a member said that it is not to be spent.
    ``kept-for-tokens``: stays at the vault's address, for the calls of its tokens.
    """  # noqa: E501

    SPENDABLE = "spendable"
    LOCKED = "locked"
    UNCONFIRMED = "unconfirmed"
    IMMATURE = "immature"
    SET_ASIDE = "set-aside"
    KEPT = "kept-for-tokens"


CoinCursorText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,16}_[0-9a-f]{64}_[0-9]{1,10}$")]


class VaultCoinsQuery(VaultPage):
    """The largest first. ``cursor`` is the last answer's ``next_cursor``. ``state`` ``set-aside``: of each state, as long as it is set
    aside. ``coin``: this one alone.
    """  # noqa: E501

    cursor: CoinCursorText | None = None
    state: CoinState | None = None
    coin: OutpointText | None = None


class SetAside(Shape):
    """``until`` is null where it has no end."""

    reason: Prose
    until: Timestamp | None
    set_at: Timestamp
    set_by_name: Label | None


class VaultCoin(Shape):
    """An output that the vault can spend, now or later. ``psbt_id``: the proposal that holds it. ``is_change``: the vault paid
    it to itself. ``set_aside``: that no new proposal spends it, and why, whatever its state.
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
    set_aside: SetAside | None = None


class VaultCoins(VaultRows):
    """Of a frozen vault nothing is spent, whatever the coins' states are."""

    tip_height: Count
    is_frozen: bool
    coins: Few[VaultCoin]


class ReleaseCoinRequest(VaultRequest):
    coin: Annotated[OutpointText, Field(examples=[f"{'0' * 64}:0"])]


class SetCoinAsideRequest(ReleaseCoinRequest):
    """``until``: from when on it may be spent again by itself."""

    reason: Name
    until: Timestamp | None = None


VAULT_HISTORY = Call(
    "GET", "/api/v1/vault-history", VaultHistoryQuery, VaultHistory,
    "A vault's movements with the balance after each, the newest or the oldest first. Follow "
    "``next_cursor``.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM, Way.SIGNER}),
    refuses=(ErrorCode.WRONG_NETWORK_ADDRESS,),
)  # fmt: skip
VAULT_STATEMENT = Call(
    "GET", "/api/v1/vault-statement", VaultStatementQuery, VaultStatement,
    "A closed month of a vault: the balance before it, its movements, the balance after it, as the chain has "
    "them.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
VAULT_COINS = Call(
    "GET", "/api/v1/vault-coins", VaultCoinsQuery, VaultCoins,
    "A vault's unspent coins, the largest first: where each is, what it may be used for, which "
    "proposal holds it.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.WRONG_NETWORK_ADDRESS,),
)  # fmt: skip
SET_COIN_ASIDE = Call(
    "POST", "/api/v1/set-coin-aside", SetCoinAsideRequest, Done,
    "Sets a coin of the vault aside: no new proposal spends it, until a member releases it or the time is "
    "over. What\nspends it already goes on. Of a coin that is set aside it replaces reason and end.",
    WORKSPACE_MANAGERS, attempt="set a coin aside", repeatable=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
RELEASE_COIN = Call(
    "POST", "/api/v1/release-coin", ReleaseCoinRequest, Done,
    "Releases a coin that was set aside: proposals may spend it again.",
    WORKSPACE_MANAGERS, attempt="release a coin",
)  # fmt: skip
