"""Shared by the tests of the small device peers: a driver beside its peer, and its arguments."""

import socketserver
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from firmware_bridge.errors import BridgeError
from firmware_bridge.model import Endpoint
from firmware_bridge.protocol import DeviceClient, Question, WorkerCall
from multisig import CHANGE, Policy
from tests.conformance.rigs import COSIGNERS, make_vault
from tests.support import driver
from tests.support.background import answering
from tests.support.bitbox02_peer import BitBox02Peer
from tests.support.driver import Person, policy_args
from tests.support.jade_peer import JadePeer

VAULT = make_vault()
OWNER = COSIGNERS[0]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def plugged_in(peer: BitBox02Peer | JadePeer, port: int = 0) -> Iterator[Endpoint]:
    server = _Server(("127.0.0.1", port), peer.handler)
    server.peer = peer
    with answering(server) as at:
        yield Endpoint(peer.family, f"tcp:127.0.0.1:{at}")


def says_yes(_question: Question) -> str:
    return "yes"


def says_nothing(_question: Question) -> None: ...


@contextmanager
def opened(
    peer: BitBox02Peer | JadePeer,
    *,
    session: str | None = None,
    on_ask: Callable[[Question], str | None] = says_yes,
) -> Iterator[tuple[DeviceClient, Person]]:
    person = Person(on_ask=on_ask)
    request = WorkerCall(0, "probe", session=session)
    with plugged_in(peer) as endpoint, driver.opened(endpoint, person, request) as device:
        yield device, person


def enrol_args(policy: Policy = VAULT, name: str = "treasury", *, again: bool = False) -> dict[str, Any]:
    return {"policy": policy_args(policy, name), "again": again, "file": None}


def address_args(policy: Policy) -> dict[str, Any]:
    return {"policy": policy_args(policy), "chain": CHANGE, "index": 3}


def outcome_of(
    device: DeviceClient, op: str, args: Mapping[str, Any] | None = None
) -> tuple[str, str | None]:
    """(code, detail) of an operation that fails."""
    with pytest.raises(BridgeError) as caught:
        device.call(op, args or {})
    return caught.value.code, caught.value.detail
