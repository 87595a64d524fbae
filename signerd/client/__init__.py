"""A client of the daemon for programs of the same person: typed calls, sync and async from one description.

::

    with DaemonClient(state_folder) as daemon:
        for line in daemon.proposals():
            print(line.psbt_id, line.state)
"""

from typing import TYPE_CHECKING, Any

from signerd.client.flow import Granted as Granted
from signerd.client.flow import store_token as store_token
from signerd.client.flow import stored_token as stored_token
from signerd.client.waiting import DaemonClient as DaemonClient
from signerd.client.waiting import EventSubscription as EventSubscription

if TYPE_CHECKING:
    from signerd.client.awaiting import AsyncDaemonClient as AsyncDaemonClient


def __getattr__(name: str) -> Any:
    """Import the async clients, which need httpx, on first use (PEP 562)."""
    if name != "AsyncDaemonClient":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from signerd.client import awaiting

    return getattr(awaiting, name)
