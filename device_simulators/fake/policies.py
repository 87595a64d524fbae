"""A policy as a worker is told it (see `firmware_bridge.protocol`), and how the played device recognises one."""

import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from device_simulators.seed import Seed
from multisig import Network, OriginKey, Policy, Profile, Vault

_LABEL: Final = b"fake device, registrations"


def parse(policy: Mapping[str, Any], network: Network) -> Policy:
    keys = tuple(OriginKey.parse(key, network) for key in policy["keys"])
    if policy["kind"] == "vault":
        return Vault(network, policy["threshold"], keys)
    return Profile(network, keys[0])


def digest(policy: Mapping[str, Any]) -> bytes:
    """The same for the same vault, whatever its name and the order of its keys."""
    return sha256(json.dumps([policy["threshold"], *sorted(policy["keys"])]).encode()).digest()


def proof(wallet: Seed, policy: Mapping[str, Any]) -> bytes:
    """What only this device can have said of this vault under this name."""
    return hmac.digest(wallet.symmetric_key(_LABEL), policy["name"].encode() + digest(policy), "sha256")
