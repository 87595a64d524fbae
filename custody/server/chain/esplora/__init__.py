"""An explorer that speaks Esplora's HTTP API (Blockstream's, mempool.space's, one's own), believed as little
as can be.
"""

from custody.server.chain.esplora.backend import EsploraBackend

__all__ = ["EsploraBackend"]
