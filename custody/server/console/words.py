"""Words and figures for what the platform's shapes say of vaults, keys and tokens."""

from collections.abc import Mapping
from types import MappingProxyType

from custody.schemas.asset_tokens import CallStatus
from custody.schemas.history import CoinState, MovementKind
from custody.schemas.limits import VaultLimits
from custody.schemas.purchases import PurchaseStatus
from custody.schemas.users import Member
from custody.text import plain
from multisig import parse_btc
from multisig.tokens import Function, format_units, token_amount

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The last day of a cycle's period.
LONGEST_CYCLE: Mapping[str, int] = MappingProxyType({"W": len(_WEEKDAYS), "M": 31})
MOVEMENT_WORDS: Mapping[MovementKind, str] = MappingProxyType(
    {
        MovementKind.DEPOSIT: "Deposit",
        MovementKind.FORWARD: "Forward of a member's own",
        MovementKind.PAYMENT: "Payment",
        MovementKind.CONSOLIDATION: "Within the vault",
        MovementKind.TOKEN: "Token",
        MovementKind.OUTSIDE: "Not proposed here",
    }
)
COIN_WORDS: Mapping[CoinState, str] = MappingProxyType(
    {
        CoinState.SPENDABLE: "may be spent",
        CoinState.RESERVED: "held by a proposal",
        CoinState.UNCONFIRMED: "in no block yet",
        CoinState.IMMATURE: "of a block's reward, too young",
    }
)
# None: an older record that does not tell.
KEY_WORDS: Mapping[str | None, str] = MappingProxyType(
    {
        "active": "in use",
        "superseded": "another device took its place: it approves moves between the workspace's vaults alone",
        "lost": "lost: it approves nothing",
        None: "not told",
    }
)
# Of a token, too, which has no STALLED.
CALL_WORDS: Mapping[CallStatus, str] = MappingProxyType(
    {
        CallStatus.PENDING: "to be signed",
        CallStatus.STALLED: "not sent yet",
        CallStatus.BROADCASTING: "on its way",
        CallStatus.CONFIRMED: "confirmed",
        CallStatus.FAILED: "failed",
    }
)
FUNCTION_WORDS: Mapping[Function, str] = MappingProxyType(
    {
        Function.INIT: "Start it",
        Function.TRANSFER: "Transfer",
        Function.MINT: "Mint",
        Function.BURN: "Burn",
        Function.PAUSE: "Pause",
        Function.UNPAUSE: "Unpause",
        Function.TRANSFER_OWNERSHIP: "Hand it over",
        Function.ENABLE_WHITELIST: "Turn the whitelist on",
        Function.DISABLE_WHITELIST: "Turn the whitelist off",
        Function.ADD_TO_WHITELIST: "Add to the whitelist",
        Function.REMOVE_FROM_WHITELIST: "Take from the whitelist",
    }
)
PURCHASE_WORDS: Mapping[PurchaseStatus, str] = MappingProxyType(
    {
        PurchaseStatus.WAITING_PAYMENT: "waits for the payment",
        PurchaseStatus.PENDING: "under way",
        PurchaseStatus.WAITING_AUTHORIZATION: "waits for your bank",
        PurchaseStatus.COMPLETED: "completed",
        PurchaseStatus.FAILED: "failed",
    }
)


class Limit:
    """A vault's limit as a bar. ``per_mille`` of the bar is used."""

    def __init__(self, limits: VaultLimits) -> None:
        self.limits = limits
        self.sats, self.used_sats, self.unused_sats = (
            int(parse_btc(text)) for text in (limits.limit, limits.used, limits.unused)
        )
        self.per_mille = min(1000, self.used_sats * 1000 // self.sats) if self.sats else 1000
        self.cycle = cycle_words(limits.cycle_period, limits.cycle_day)

    @classmethod
    def of(cls, limits: VaultLimits | None) -> "Limit | None":
        return None if limits is None else cls(limits)


def cycle_words(period: str, day: int) -> str:
    """``day``: of the week from Monday on, or of the month."""
    return f"each week from {_WEEKDAYS[day - 1]}" if period == "W" else f"each month from day {day}"


def member_words(member: Member) -> str:
    name = plain(" ".join(part for part in (member.first_name.value, member.surname.value) if part))
    return f"{name}, {member.email}" if name else member.email


def token_units(raw: str | int, decimals: int) -> str:
    """Whole tokens, in groups of three: 125000 with two decimals is ``1,250.00``."""
    whole, point, fraction = format_units(token_amount(int(raw)), decimals).partition(".")
    return f"{int(whole):,}{point}{fraction}"
