"""All calls of the platform, as a client for asyncio."""

from custody.client.awaiting import AwaitingConnection
from custody.client.clients import Api


class AsyncClient(Api, AwaitingConnection):
    """See ``AwaitingConnection``."""
