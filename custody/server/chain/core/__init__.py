"""A Bitcoin Core node over JSON-RPC, without a wallet."""

from custody.server.chain.core.backend import CoreBackend
from custody.server.chain.core.rpc import CookieFile, Credentials, Password

__all__ = ["CookieFile", "CoreBackend", "Credentials", "Password"]
