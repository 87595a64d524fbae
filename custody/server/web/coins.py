"""What a vault's coins allow."""

from custody.schemas.coins import MaxSend, MaxSendQuery
from custody.server.domain.errors import (
    ChainUnavailable,
    NotInAddressBook,
    PolicyUnavailable,
    VaultFrozen,
    WrongNetworkAddress,
)
from custody.server.web.endpoint import Call, Endpoint, Unit
from custody.server.web.vaults import VAULT_READERS


def max_send(call: Call[MaxSendQuery]) -> MaxSend:
    """The most that the caller can send to the recipients in one payment now, fee beside it, and why it is not more.
    ``create-psbt`` accepts it as long as nothing else happens. It reserves nothing.
    """  # noqa: E501
    return call.services.maximum.find(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "GET", "/api/v1/max-send", max_send, MaxSend, VAULT_READERS, Unit.READ, MaxSendQuery,
        refuses=(ChainUnavailable, NotInAddressBook, PolicyUnavailable, VaultFrozen, WrongNetworkAddress),
    ),
)  # fmt: skip
