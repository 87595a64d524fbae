"""The platform's SDK: typed calls; the sync and async clients share one definition of each call."""

from typing import TYPE_CHECKING, Any

from custody.client.errors import ApiError, BadAnswer, ClientError, InsecureUrl, SignedOut, Unreachable
from custody.client.flow import Session
from custody.client.payments import ProposalList

if TYPE_CHECKING:
    from custody.client.async_client import AsyncClient
    from custody.client.clients import Api, Client

__all__ = [
    "Api",
    "ApiError",
    "AsyncClient",
    "BadAnswer",
    "Client",
    "ClientError",
    "InsecureUrl",
    "ProposalList",
    "Session",
    "SignedOut",
    "Unreachable",
]


def __getattr__(name: str) -> Any:
    """Imports the clients lazily (PEP 562): they load the shapes of all calls."""
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    if name == "AsyncClient":
        # With httpx.
        from custody.client.async_client import AsyncClient

        return AsyncClient
    from custody.client import clients

    return getattr(clients, name)
