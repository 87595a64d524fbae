"""The daemon, for another program of the same person: its interface as typed calls, sync and async from one
description.

::

    with DaemonClient(state_folder) as daemon:
        for line in daemon.proposals():
            print(line.psbt_id, line.state)
"""

from signerd.client.clients import AsyncDaemonClient, AsyncFollowing, DaemonClient, Following
from signerd.client.flow import Granted, store_token, stored_token

__all__ = [
    "AsyncDaemonClient",
    "AsyncFollowing",
    "DaemonClient",
    "Following",
    "Granted",
    "store_token",
    "stored_token",
]
