"""The platform's SDK: typed calls over httpx, sync and async from one description."""

from custody.client.api import Api
from custody.client.calls.payments import ProposalList
from custody.client.clients import AsyncClient, Client
from custody.client.errors import ApiError, BadAnswer, ClientError, InsecureUrl, SignedOut, Unreachable
from custody.client.session import Session

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
