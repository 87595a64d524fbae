"""The Bitcoin network as the platform sees it: one protocol, several backends."""
