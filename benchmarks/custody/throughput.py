"""Proposals and approvals a second: the platform as a service and through HTTP, beside the bare database doing the same writes."""

import time
from collections.abc import Callable
from typing import Any

from benchmarks.custody.bare import Bare
from benchmarks.custody.processes import beside, posted, propose, servers, together
from benchmarks.custody.stage import SECONDS, databases, fill, staged
from custody.schemas.proposals import CreatePsbtRequest
from custody.server.domain.caller import Caller
from custody.server.store.opening import open_database
from tests.support.custody import SHOP, Desk, ok

COINS = 3_000
# Approvals through HTTP: two for each of so many proposals.
SIGNED = 30
COUNTS = (1, 2)


def a_send(desk: Desk, amount: int = 10_000) -> dict[str, Any]:
    return {
        "wallet_id": desk.vault["id"],
        "workspace_id": desk.workspace_id,
        "tx_type": "send",
        "recipients": [SHOP],
        "amounts_sats": [amount],
        "fee_rate": "1",
    }


def caller_of(desk: Desk) -> Caller:
    token = desk.admin.headers["Authorization"].removeprefix("Bearer ")
    return desk.world.platform.services.sessions.authenticate(token, "bench")


def rate(work: Callable[[], object], seconds: float = SECONDS) -> float:
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        work()
        done += 1
    return done / (time.perf_counter() - began)


def all_of(work: Callable[..., object], calls: list[tuple[Any, ...]]) -> float:
    began = time.perf_counter()
    for call in calls:
        work(*call)
    return len(calls) / (time.perf_counter() - began)


def finished_one(desk: Desk) -> None:
    """A proposal with everything that one leaves behind: the bare writes are copied from it."""
    created = ok(desk.propose(10_000, fee_rate="1"))
    for name in ("alice", "bob"):
        desk.approve(name, created["psbt_id"])


def approvals(desk: Desk, count: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Signed before the clock runs: how long a device takes is not the platform's affair."""
    calls = []
    for _ in range(count):
        psbt_id = ok(desk.propose(10_000, fee_rate="1"))["psbt_id"]
        for name in ("alice", "bob"):
            body = {"psbt_id": psbt_id, "workspace_id": desk.workspace_id}
            calls.append(
                (
                    name,
                    "/api/v1/sign-psbt",
                    body | {"psbt_base64": desk.signed(name, psbt_id).to_base64()},
                )
            )
    return calls


def halves(calls: list[Any]) -> list[list[Any]]:
    """First all first approvals, then all second ones: two of one proposal at once would only measure the race."""
    return [calls[0::2], calls[1::2]]


class Report:
    """Prints each figure as it comes, beside the bare database's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bare: dict[str, float] = {}

    def add(self, what: str, how: str, figure: float) -> None:
        peer = self._bare.setdefault(what, figure)
        words = f"{self._name:>10}  {what:<9} {how:<24} {figure:8.1f} a second  ÷ bare {figure / peer:5.2f}"
        print(words, flush=True)


def measure(name: str, url: str) -> None:
    with staged(url) as desk:
        fill(desk, COINS)
        finished_one(desk)
        report, state, caller = (
            Report(name),
            desk.world.platform.background.chain_folder.parent,
            caller_of(desk),
        )
        platform, request = beside(str(state), url), CreatePsbtRequest.model_validate(a_send(desk))
        # Before the platform goes on: both count the same audit chain.
        bare = Bare(platform.services.store, open_database(url).writing)
        report.add("proposal", "bare database", rate(bare.propose))
        each = [(one, place) for one in bare.ids for place in (0, 1)]
        report.add("approval", "bare database", all_of(bare.approve, each))
        report.add("proposal", "service", rate(lambda: propose(platform, caller, request)))
        platform.close()
        for count in COUNTS:
            many = together(state, url, caller, a_send(desk), count, SECONDS)
            report.add("proposal", f"service, {count} process(es)", many)
        calls = [("admin", "/api/v1/create-psbt", a_send(desk))] * int(SECONDS * 40)
        for count in COUNTS:
            signed = approvals(desk, SIGNED)
            with servers(state, url, count) as addresses:
                report.add("proposal", f"HTTP, {count} process(es)", posted(desk, addresses, calls))
                rates = [posted(desk, addresses, half) for half in halves(signed)]
                report.add("approval", f"HTTP, {count} process(es)", 2 / sum(1 / each for each in rates))


def main() -> None:
    print(f"proposals and approvals, 2 of 3, {COINS} coins; {SECONDS:g} s each; client on the same cores")
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url)
