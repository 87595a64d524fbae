"""The platform's SDK: typed calls; the sync and async clients share one definition of each call."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from custody.client.errors import ApiError as ApiError
from custody.client.errors import BadAnswer as BadAnswer
from custody.client.errors import ClientError as ClientError
from custody.client.errors import InsecureUrl as InsecureUrl
from custody.client.errors import SignedOut as SignedOut
from custody.client.errors import Unreachable as Unreachable
from custody.client.flow import Session as Session

if TYPE_CHECKING:
    from custody.client.api import Api as Api
    from custody.client.api import ProposalList as ProposalList
    from custody.client.awaiting import AsyncClient as AsyncClient
    from custody.client.clients import Client as Client


def __getattr__(name: str) -> Any:
    """Imports the clients lazily (PEP 562): they load the shapes of all calls."""
    # ``awaiting`` with httpx.
    homes = {"Api": "api", "AsyncClient": "awaiting", "Client": "clients", "ProposalList": "api"}
    if name not in homes:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{homes[name]}"), name)
