"""An explorer that speaks Esplora's HTTP API (Blockstream's, mempool.space's, your own), trusted as little as
possible.
"""

from custody.server.chain.esplora.backend import EsploraBackend

__all__ = ["EsploraBackend"]
