"""A vault's movements and coins."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypedDict, TypeVar, Unpack

from custody.client.errors import BadAnswer
from custody.client.flow import Core, call, read_list
from custody.exchange import Plan, method
from custody.schemas.common import format_time
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

# Bounds the memory where a faulty platform always names a next page.
MOST_MOVEMENTS = 200_000
# Pages may be empty where a filter leaves much out.
MOST_PAGES = 10_000
PageT = TypeVar("PageT", VaultHistory, VaultCoins)
EntryT = TypeVar("EntryT", VaultMovement, VaultCoin)


class MovementFilters(TypedDict, total=False):
    """``from_time`` is inclusive, ``to_time`` is not; amounts in satoshi, without their sign."""

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
    """Amounts in satoshi."""

    state: CoinState | None
    min_sats: int | None
    max_sats: int | None
    address: str | None


class HistoryCalls:
    @method
    @staticmethod
    def vault_history(
        core: Core,
        workspace_id: int,
        vault_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        **filters: Unpack[MovementFilters],
    ) -> Plan[VaultHistory]:
        """``GET /api/v1/vault-history``: one page, by default the newest first."""
        query = _query(workspace_id, vault_id, filters) | {"cursor": cursor, "limit": limit}
        return (yield from _page(core, query))

    @method
    @staticmethod
    def every_movement(
        core: Core, workspace_id: int, vault_id: str, **filters: Unpack[MovementFilters]
    ) -> Plan[list[VaultMovement]]:
        """``GET /api/v1/vault-history``, page after page to the end, up to ``MOST_MOVEMENTS``. All of it is
        in memory: name times where there is much.
        """
        query = _query(workspace_id, vault_id, filters) | {"limit": MAX_MOVEMENTS}
        endless = "vault-history: no end after {:,} movements; name times where there are more"
        return (yield from _to_the_end(core, query, _page, lambda page: page.movements, endless))

    @method
    @staticmethod
    def vault_coins(
        core: Core,
        workspace_id: int,
        vault_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        **filters: Unpack[CoinFilters],
    ) -> Plan[VaultCoins]:
        """``GET /api/v1/vault-coins``: one page of the unspent coins, the largest first."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id, **filters}
        return (yield from _coins(core, query | {"cursor": cursor, "limit": limit}))

    @method
    @staticmethod
    def every_coin(
        core: Core, workspace_id: int, vault_id: str, **filters: Unpack[CoinFilters]
    ) -> Plan[list[VaultCoin]]:
        """``GET /api/v1/vault-coins``, page after page to the end, up to ``MOST_MOVEMENTS``."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id, **filters, "limit": MAX_COINS}
        endless = "vault-coins: no end after {:,} coins"
        return (yield from _to_the_end(core, query, _coins, lambda page: page.coins, endless))


def _to_the_end(
    core: Core,
    query: dict[str, Any],
    read_page: Callable[[Core, dict[str, Any]], Plan[PageT]],
    entries: Callable[[PageT], list[EntryT]],
    endless: str,
) -> Plan[list[EntryT]]:
    """Raises BadAnswer with ``endless``, which takes how many were read, where no page is the last."""
    found: list[EntryT] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = yield from read_page(core, query | {"cursor": cursor})
        found += entries(page)
        if page.next_cursor is None:
            return found
        if page.next_cursor == cursor or len(found) > MOST_MOVEMENTS:
            break
        cursor = page.next_cursor
    raise BadAnswer(endless.format(len(found)))


def _coins(core: Core, query: dict[str, Any]) -> Plan[VaultCoins]:
    request = core.build("GET", "/api/v1/vault-coins", query=query)
    return read_list(core, (yield from call(core, request, repeatable=True)), VaultCoins)


def _query(workspace_id: int, vault_id: str, filters: MovementFilters) -> dict[str, Any]:
    given: dict[str, Any] = {"workspace_id": workspace_id, "vault_id": vault_id, **filters}
    return {
        name: format_time(value) if isinstance(value, datetime) else value for name, value in given.items()
    }


def _page(core: Core, query: dict[str, Any]) -> Plan[VaultHistory]:
    request = core.build("GET", "/api/v1/vault-history", query=query)
    return read_list(core, (yield from call(core, request, repeatable=True)), VaultHistory)
