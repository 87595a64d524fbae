"""A regtest chain of our own in this process: blocks in SQLite, validated by Bitcoin Core's engine."""

from custody.server.chain.embedded.chain import EmbeddedChain

__all__ = ["EmbeddedChain"]
