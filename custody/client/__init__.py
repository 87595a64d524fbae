"""The platform's SDK: typed calls; the sync and async clients share one definition of each call."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from custody.client.errors import ApiError, BadAnswer, ClientError, InsecureUrl, SignedOut, Unreachable
from custody.client.flow import Session

if TYPE_CHECKING:
    from custody.client.api import Api, ProposalList
    from custody.client.awaiting import AsyncClient
    from custody.client.clients import Client

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
    # ``awaiting`` with httpx.
    home = {"AsyncClient": "awaiting", "Client": "clients"}.get(name, "api")
    return getattr(import_module(f"{__name__}.{home}"), name)
