"""A stored vault as the policy that derives its scripts."""

from functools import lru_cache

from custody.server.store.models import Vault
from multisig import Network
from multisig import Vault as Policy

# Parsing a descriptor checks every key; a policy keeps its branch nodes, so that the next address is cheap.
CACHED_POLICIES = 1_024


def policy_of(vault: Vault) -> Policy:
    """The same object for the same vault."""
    return _parse(vault.descriptor, vault.chain)


@lru_cache(CACHED_POLICIES)
def _parse(descriptor: str, chain: str) -> Policy:
    return Policy.from_descriptor(descriptor, Network(chain))
