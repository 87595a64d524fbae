"""A vault's movements and coins, and the audit log, page after page to the end."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from typing import TypedDict, TypeVar, Unpack

from custody.client.calls import HistoryCalls, LogCalls
from custody.client.errors import BadAnswer
from custody.client.flow import Core
from custody.common.exchange import Plan, method
from custody.schemas.history import (
    MAX_COINS,
    MAX_MOVEMENTS,
    CoinState,
    MovementKind,
    MovementOrder,
    MovementStatus,
    VaultCoin,
    VaultCoins,
    VaultHistory,
    VaultMovement,
)
from custody.schemas.logs import MAX_PAGE_SIZE, AuditLogEntry, LogsPage

# Some hundred megabytes: bounds the memory where a faulty platform always names a next page.
MOST_ENTRIES = 200_000
MOST_PAGES = 10_000
PageT = TypeVar("PageT", VaultHistory, VaultCoins, LogsPage)
EntryT = TypeVar("EntryT", VaultMovement, VaultCoin, AuditLogEntry)


class MovementFilters(TypedDict, total=False):
    """As of a page: ``from_time`` is inclusive, ``to_time`` is not; amounts in satoshi, unsigned."""

    order: MovementOrder | None
    kind: MovementKind | None
    status: MovementStatus | None
    from_time: datetime | None
    to_time: datetime | None
    min_sats: int | None
    max_sats: int | None
    address: str | None
    label: str | None
    txid: str | None
    with_replaced: bool | None


class CoinFilters(TypedDict, total=False):
    """As of a page: amounts in satoshi."""

    state: CoinState | None
    min_sats: int | None
    max_sats: int | None
    address: str | None


class LogDays(TypedDict, total=False):
    """Days are inclusive, in UTC; ``user_uuid``: events of that person."""

    from_day: date | None
    to_day: date | None
    category: str | None
    user_uuid: int | None


class WholeHistoryCalls:
    """Each reads up to ``MOST_ENTRIES``, all of it in memory."""

    @method
    @staticmethod
    def every_movement(
        core: Core, /, workspace_id: int, vault_id: str, **filters: Unpack[MovementFilters]
    ) -> Plan[list[VaultMovement]]:
        """``GET /api/v1/vault-history`` to the end: name times where there is much."""
        read = partial(
            HistoryCalls.vault_history.plan, core, workspace_id, vault_id, limit=MAX_MOVEMENTS, **filters
        )
        endless = "vault-history: no end after {:,} movements; name times where there are more"
        return (yield from _to_the_end(read, lambda page: page.movements, endless))

    @method
    @staticmethod
    def every_coin(
        core: Core, /, workspace_id: int, vault_id: str, **filters: Unpack[CoinFilters]
    ) -> Plan[list[VaultCoin]]:
        """``GET /api/v1/vault-coins`` to the end."""
        read = partial(
            HistoryCalls.vault_coins.plan, core, workspace_id, vault_id, limit=MAX_COINS, **filters
        )
        return (yield from _to_the_end(read, lambda page: page.coins, "vault-coins: no end after {:,} coins"))

    @method
    @staticmethod
    def every_log(
        core: Core, /, org_uid: int, workspace_uid: int, **days: Unpack[LogDays]
    ) -> Plan[list[AuditLogEntry]]:
        """``GET /api/v1/get-logs`` to the end: name days where there is much."""
        read = partial(LogCalls.logs.plan, core, org_uid, workspace_uid, page_size=MAX_PAGE_SIZE, **days)
        endless = "get-logs: no end after {:,} entries; name days where there are more"
        return (yield from _to_the_end(read, lambda page: page.logs, endless, may_be_empty=False))


def _to_the_end(
    read: Callable[..., Plan[PageT]],
    entries: Callable[[PageT], list[EntryT]],
    endless: str,
    *,
    may_be_empty: bool = True,
) -> Plan[list[EntryT]]:
    """Raises BadAnswer with ``endless``, which takes how many were read, where no page is the last.
    ``may_be_empty``: pages where a filter leaves much out.
    """
    found: list[EntryT] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = yield from read(cursor=cursor)
        found += entries(page)
        if page.next_cursor is None:
            return found
        is_stuck = page.next_cursor == cursor or not (may_be_empty or entries(page))
        if is_stuck or len(found) > MOST_ENTRIES:
            break
        cursor = page.next_cursor
    raise BadAnswer(endless.format(len(found)))
