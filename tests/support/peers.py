"""Shared by the tests of the small device peers: a driver beside its peer, its arguments, and signatures."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from device_simulators.seed import Seed
from firmware_bridge.errors import BridgeError
from firmware_bridge.protocol import DeviceClient
from multisig import (
    CHANGE,
    SIGHASH_ALL,
    KeyOrigin,
    OriginKey,
    Policy,
    Profile,
    Psbt,
    SighashCache,
    hash160,
    p2pkh,
    profile_account_path,
)
from tests.conformance.rigs import NETWORK, SEEDS, make_vault
from tests.support.driver import policy_args

VAULT = make_vault()
SEED = SEEDS[0]


def own_profile() -> Profile:
    path = profile_account_path(NETWORK)
    return Profile(NETWORK, OriginKey(KeyOrigin(SEED.fingerprint, path), SEED.xpub(path, NETWORK)))


def enrol_args(policy: Policy = VAULT, name: str = "treasury", *, again: bool = False) -> dict[str, Any]:
    return {"policy": policy_args(policy, name), "again": again, "file": None}


def sign_args(psbt: Psbt, policy: Policy = VAULT) -> dict[str, Any]:
    text = base64.b64encode(psbt.to_bytes()).decode()
    return {"psbt": text, "policy": policy_args(policy), "payments": 1, "resume": False}


def address_args(policy: Policy) -> dict[str, Any]:
    return {"policy": policy_args(policy), "chain": CHANGE, "index": 3}


def outcome_of(
    device: DeviceClient, op: str, args: Mapping[str, Any] | None = None
) -> tuple[str, str | None]:
    """(code, detail) of an operation that fails."""
    with pytest.raises(BridgeError) as caught:
        device.call(op, args or {})
    return caught.value.code, caught.value.detail


def sign_psbt(seed: Seed, psbt: Psbt) -> Psbt:
    """Signs every input that has a key of the seed, without checks."""
    return psbt.with_signatures({index: _signatures(seed, psbt, index) for index in range(len(psbt.inputs))})


def _signatures(seed: Seed, psbt: Psbt, index: int) -> dict[bytes, bytes]:
    item = psbt.inputs[index]
    spent = item.non_witness_utxo.outputs[psbt.tx.inputs[index].outpoint.vout]
    signatures = {}
    for key, origin in item.derivations.items():
        if origin.fingerprint == seed.fingerprint:
            code = item.witness_script if item.witness_script is not None else p2pkh(hash160(key))
            digest = SighashCache(psbt.tx).segwit_v0(index, code, spent.amount, SIGHASH_ALL)
            signatures[key] = seed.sign(origin.path, digest) + bytes((SIGHASH_ALL,))
    return signatures
