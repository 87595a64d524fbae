"""Shared by the tests of the small device peers: a driver beside its peer, its arguments, and signatures."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from firmware_bridge.errors import BridgeError
from firmware_bridge.protocol import DeviceClient
from multisig import CHANGE, Policy, Psbt
from tests.conformance.rigs import COSIGNERS, make_vault
from tests.support.driver import policy_args

VAULT = make_vault()
OWNER = COSIGNERS[0]


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
