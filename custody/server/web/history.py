"""What happened to a vault."""

from custody.schemas.history import VaultCoins, VaultCoinsQuery, VaultHistory, VaultHistoryQuery
from custody.server.domain.errors import WrongNetworkAddress
from custody.server.web.endpoint import Call, Endpoint, Unit
from custody.server.web.vaults import VAULT_READERS


def vault_history(call: Call[VaultHistoryQuery]) -> VaultHistory:
    """A vault's movements with the balance after each, the newest or the oldest first. Follow ``next_cursor``."""  # noqa: E501
    return call.services.history.page(call.db, call.access, call.body)


def vault_coins(call: Call[VaultCoinsQuery]) -> VaultCoins:
    """A vault's unspent coins, the largest first: where each is, what it may be used for, which proposal holds it."""  # noqa: E501
    return call.services.coin_list.page(call.db, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "GET", "/api/v1/vault-history", vault_history, VaultHistory, VAULT_READERS, Unit.READ,
        VaultHistoryQuery, refuses=(WrongNetworkAddress,),
    ),
    Endpoint(
        "GET", "/api/v1/vault-coins", vault_coins, VaultCoins, VAULT_READERS, Unit.READ, VaultCoinsQuery,
        refuses=(WrongNetworkAddress,),
    ),
)  # fmt: skip
