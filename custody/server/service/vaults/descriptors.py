"""A stored vault as the policy that derives its scripts."""

from functools import lru_cache

from custody.server.store.models import Vault
from multisig import Network
from multisig import Vault as Policy

# Parsing a descriptor checks every key; a policy keeps its branch nodes, so that the next address is cheap.
CACHED_POLICIES = 1_024


def policy_of(vault: Vault) -> Policy:
    """The same object for the same vault."""
    return policy_from(vault.descriptor, vault.chain)


@lru_cache(CACHED_POLICIES)
def policy_from(descriptor: str, chain: str) -> Policy:
    """The same, from a vault's columns."""
    return Policy.from_descriptor(descriptor, Network(chain))
