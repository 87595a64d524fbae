"""Latency under load: 20 proposals and 20 approvals a second arrive at fixed times, while 100,000 proposals
already wait for signatures. The aim: 95 % of answers within 100 ms.

Each call is measured from the time at which it is due, so that a server that falls behind shows.
Signatures are made beforehand.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle, islice
from statistics import quantiles
from typing import Any

from benchmarks.custody.processes import serving
from benchmarks.custody.stage import SECONDS, databases, fill, moving_on, multiply, staged, vaults
from benchmarks.idle import cpu_ms
from custody.server.rules.credentials import Caller
from tests.support.custody import SHOP, Desk, ok

VAULTS = 10
COINS = 3_000
PENDING = int(os.environ.get("BENCH_PENDING", "100000"))
A_SECOND = 20
AIM_MS = 100.0
SIGNERS = ("alice", "bob")
# More than are under way at once, unless the server falls behind.
CLIENTS = 32


@dataclass(frozen=True)
class Call:
    """A prepared request: the caller's headers, the path, the body."""

    headers: dict[str, str]
    path: str
    body: bytes


def a_send(desk: Desk, vault_id: str) -> dict[str, Any]:
    return {
        "wallet_id": vault_id,
        "workspace_id": desk.workspace_id,
        "tx_type": "send",
        "recipients": [SHOP],
        "amounts_sats": [10_000],
        "fee_rate": "1",
    }


def caller_of(desk: Desk) -> Caller:
    token = desk.admin.headers["Authorization"].removeprefix("Bearer ")
    return desk.world.caller(token)


def proposals(desk: Desk, held: Sequence[dict[str, Any]], count: int) -> list[Call]:
    bodies = [a_send(desk, vault["id"]) for vault in held]
    return [_call(desk.admin.headers, "/api/v1/create-psbt", body) for body in islice(cycle(bodies), count)]


def approvals(desk: Desk, held: Sequence[dict[str, Any]], count: int) -> list[Call]:
    """All first approvals, then all second ones, which finalise."""
    halves: list[list[Call]] = [[] for _ in SIGNERS]
    for vault in islice(cycle(held), count // len(SIGNERS)):
        desk.vault = vault
        psbt_id = ok(desk.propose(10_000, fee_rate="1"))["psbt_id"]
        for name, half in zip(SIGNERS, halves, strict=True):
            signed = desk.signed(name, psbt_id).to_base64()
            body = {"psbt_id": psbt_id, "workspace_id": desk.workspace_id, "psbt_base64": signed}
            half.append(_call(desk.signers[name].headers, "/api/v1/sign-psbt", body))
    return [call for half in halves for call in half]


def _call(headers: dict[str, str], path: str, body: dict[str, Any]) -> Call:
    return Call(headers | {"Content-Type": "application/json"}, path, json.dumps(body).encode())


class Clients:
    """Threads that send each call when it is due, over persistent connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._own = threading.local()

    def send(self, kinds: Sequence[Sequence[Call]]) -> list[list[float]]:
        """Milliseconds from when each call was due to its answer, by kind; the kinds run concurrently."""
        began = time.perf_counter() + 0.1
        with ThreadPoolExecutor(CLIENTS) as pool:
            due = sorted(
                (began + (number + place / len(kinds)) / A_SECOND, place, call)
                for place, calls in enumerate(kinds)
                for number, call in enumerate(calls)
            )
            answers = []
            for at, place, call in due:
                time.sleep(max(0.0, at - time.perf_counter()))
                answers.append((place, pool.submit(self._answered_ms, at, call)))
            found: list[list[float]] = [[] for _ in kinds]
            for place, answer in answers:
                found[place].append(answer.result())
        return found

    def _answered_ms(self, at: float, call: Call) -> float:
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("POST", call.path, call.body, call.headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(text.decode())
        return (time.perf_counter() - at) * 1_000


def measure(name: str, url: str) -> None:
    with staged(url) as desk:
        held = vaults(desk, VAULTS)
        for vault in held:
            fill(desk, COINS, vault_id=vault["id"])
        moving_on(desk, [vault["id"] for vault in held])
        ok(desk.propose(10_000, fee_rate="1"))
        for vault in held:
            multiply(desk, PENDING // VAULTS, vault_id=vault["id"], movement_sats=1)
        count = int(SECONDS * A_SECOND)
        kinds = {
            "create-psbt": proposals(desk, held, count),
            "sign-psbt": approvals(desk, held, count),
        }
        state = str(desk.world.platform.background.settings.chain_folder.parent)
        with serving(state, url) as (port, server):
            # As in a server that has run for a while.
            Clients(port).send([proposals(desk, held, A_SECOND)])
            before, spent_before = os.getloadavg()[0], cpu_ms(server)
            found = Clients(port).send(list(kinds.values()))
            each = (cpu_ms(server) - spent_before) / (len(kinds) * count)
        load = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
    for what, spent in zip(kinds, found, strict=True):
        cut = quantiles(spent, n=100)
        verdict = "within" if cut[94] <= AIM_MS else "above"
        print(
            f"{name:>10}  {what:<12} p50 {cut[49]:6.1f} ms, p95 {cut[94]:6.1f} ms ({verdict} {AIM_MS:g}), "
            f"p99 {cut[98]:6.1f} ms; load {load}",
            flush=True,
        )

    print(f"{name:>10}  the server's processor time: {each:.1f} ms for each of them", flush=True)


def main() -> None:
    print(
        f"{A_SECOND} proposals and {A_SECOND} approvals a second for {SECONDS:g} s, 2 of 3, "
        f"{VAULTS} vaults of {COINS} coins, {PENDING} pending; "
        "client, server and database on the same cores"
    )
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url)
