"""The platform's SDK: typed calls over httpx; the sync and async clients share one definition of each
call.
"""

from custody.client.clients import Api, AsyncClient, Client
from custody.client.errors import ApiError, BadAnswer, ClientError, InsecureUrl, SignedOut, Unreachable
from custody.client.flow import Session
from custody.client.payments import ProposalList

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
