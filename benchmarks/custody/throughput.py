"""Proposals and approvals a second: the platform as a service and through HTTP, beside the bare database doing the same writes.

Everybody is measured several times in turns, and the median counts: what else the machine does meanwhile meets all of them.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from statistics import median
from typing import Any

from benchmarks.custody.bare_http import CREATE, SIGN
from benchmarks.custody.processes import Call, Done, Team, posted, serve_bare, serve_platform, servers, team
from benchmarks.custody.stage import SECONDS, databases, fill, moving_on, settle, staged, vaults
from custody.schemas.proposals import SignPsbtRequest
from custody.server.domain.caller import Caller
from tests.support.custody import SHOP, Desk, ok

# A platform's work is spread over its vaults; what one of them has open makes its next proposal slower.
VAULTS = 10
COINS = 3_000
# Approvals: two for each of so many proposals.
SIGNED = 40
COUNTS = (1, 2)
ROUNDS = 3
SIGNERS = ("alice", "bob")
# Everybody's peer, and a second one of whoever is called through HTTP.
BARE, BARE_HTTP = "bare database", "bare through HTTP"
WIDTH = 21
Approval = tuple[str, dict[str, Any]]


def a_send(desk: Desk, vault_id: str, amount: int = 10_000) -> dict[str, Any]:
    return {
        "wallet_id": vault_id,
        "workspace_id": desk.workspace_id,
        "tx_type": "send",
        "recipients": [SHOP],
        "amounts_sats": [amount],
        "fee_rate": "1",
    }


def caller_of(desk: Desk, name: str = "admin") -> Caller:
    token = _headers(desk, name)["Authorization"].removeprefix("Bearer ")
    return desk.world.platform.services.sessions.authenticate(token, "bench")


def _headers(desk: Desk, name: str) -> dict[str, str]:
    return (desk.admin if name == "admin" else desk.signers[name]).headers


def finished_one(desk: Desk) -> None:
    """A proposal with everything that one leaves behind: the bare writes are copied from it."""
    created = ok(desk.propose(10_000, fee_rate="1"))
    for name in SIGNERS:
        desk.approve(name, created["psbt_id"])


def approvals(desk: Desk, vaults: Sequence[dict[str, Any]], count: int) -> list[list[Approval]]:
    """First all first approvals, then all second ones: two of one proposal at once would only measure the race.

    Signed before the clock runs: how long a device takes is not the platform's affair.
    """
    halves: list[list[Approval]] = [[] for _ in SIGNERS]
    for vault in islice(cycle(vaults), count):
        desk.vault = vault
        psbt_id = ok(desk.propose(10_000, fee_rate="1"))["psbt_id"]
        for name, half in zip(SIGNERS, halves, strict=True):
            signed = desk.signed(name, psbt_id).to_base64()
            half.append(
                (name, {"psbt_id": psbt_id, "workspace_id": desk.workspace_id, "psbt_base64": signed})
            )
    return halves


class Report:
    """Collects what each round shows, and prints each median beside that of the bare database with as many processes: called
    for all, and behind a server of its own for what goes through HTTP.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._rates: dict[tuple[str, str, int], list[float]] = defaultdict(list)

    def add(self, what: str, how: str, processes: int, rate: float) -> None:
        self._rates[what, how, processes].append(rate)

    def show(self) -> None:
        peers = "".join(f"{'÷ ' + peer:>{WIDTH}}" for peer in (BARE, BARE_HTTP))
        print(f"{'database':>10}  {'what':<9} {'processes':>9}  {'who':<18} {'a second':>8}{peers}")
        for (what, how, processes), rates in self._rates.items():
            rate, peers = median(rates), [BARE, BARE_HTTP] if "HTTP" in how else [BARE]
            ratios = "".join(
                f"{rate / median(self._rates[what, peer, processes]):{WIDTH}.2f}" for peer in peers
            )
            print(f"{self._name:>10}  {what:<9} {processes:>9}  {how:<18} {rate:8.1f}{ratios}", flush=True)


def rate_of(done: Sequence[Done]) -> float:
    return sum(each.count / each.seconds for each in done)


def turns_of(done: Sequence[Done]) -> float:
    """How many of them the writers' turn has room for in a second: one process's, which nobody else disturbs."""
    return sum(each.count for each in done) / sum(each.held for each in done)


class Stage:
    """One database, with everybody who is measured on it."""

    def __init__(
        self,
        desk: Desk,
        vaults: Sequence[dict[str, Any]],
        workers: Team,
        ports: Sequence[int],
        bare_ports: Sequence[int],
        report: Report,
    ) -> None:
        self._desk, self._workers, self._report = desk, workers, report
        self._ports, self._bare_ports = ports, bare_ports
        self._vaults = vaults
        self._callers = {name: caller_of(desk, name) for name in SIGNERS}

    def round(self, seconds: float) -> None:
        for count in COUNTS:
            self._proposals(count, seconds)
            self._approvals(count)

    def _proposals(self, count: int, seconds: float) -> None:
        add, each = self._report.add, [seconds] * count
        bare = self._workers.do("propose_bare", each)
        add("proposal", BARE, count, rate_of(bare))
        settle(self._desk)
        done = self._workers.do("propose", each)
        add("proposal", "service", count, rate_of(done))
        if count == 1:
            add("proposal", "writers' turn", count, turns_of(done))
        # As many as have just been made without, so that it takes about as long.
        settle(self._desk)
        calls = self._sends("/api/v1/create-psbt", max(8, sum(one.count for one in done)))
        add("proposal", "HTTP", count, len(calls) / posted(self._ports[:count], calls))
        calls = self._sends(CREATE, max(8, sum(one.count for one in bare)))
        add("proposal", BARE_HTTP, count, len(calls) / posted(self._bare_ports[:count], calls))

    def _sends(self, path: str, count: int) -> list[Call]:
        headers = _headers(self._desk, "admin") | {"Content-Type": "application/json"}
        bodies = [json.dumps(a_send(self._desk, vault["id"])).encode() for vault in self._vaults]
        return [Call(headers, path, body) for body in islice(cycle(bodies), count)]

    def _approvals(self, count: int) -> None:
        add = self._report.add
        add("approval", BARE, count, rate_of(self._workers.do("approve_bare", [SIGNED] * count)))
        halves = [
            self._workers.do("approve", [self._asked(half)[place::count] for place in range(count)])
            for half in approvals(self._desk, self._vaults, SIGNED * count)
        ]
        add("approval", "service", count, 2 / sum(1 / rate_of(half) for half in halves))
        if count == 1:
            add("approval", "writers' turn", count, turns_of([done for half in halves for done in half]))
        halves = [self._calls(half) for half in approvals(self._desk, self._vaults, SIGNED * count)]
        seconds = sum(posted(self._ports[:count], half) for half in halves)
        add("approval", "HTTP", count, 2 * SIGNED * count / seconds)
        posted(self._bare_ports[:count], self._sends(CREATE, SIGNED * count))
        bare = [[replace(call, path=path) for call in half] for path, half in zip(SIGN, halves, strict=True)]
        seconds = sum(posted(self._bare_ports[:count], half) for half in bare)
        add("approval", BARE_HTTP, count, 2 * SIGNED * count / seconds)

    def _asked(self, given: Sequence[Approval]) -> list[tuple[Caller, SignPsbtRequest]]:
        return [(self._callers[name], SignPsbtRequest.model_validate(body)) for name, body in given]

    def _calls(self, given: Sequence[Approval]) -> list[Call]:
        return [
            Call(
                _headers(self._desk, name) | {"Content-Type": "application/json"},
                "/api/v1/sign-psbt",
                json.dumps(body).encode(),
            )
            for name, body in given
        ]


def measure(name: str, url: str) -> None:
    with staged(url) as desk:
        held = vaults(desk, VAULTS)
        for vault in held:
            fill(desk, COINS, vault_id=vault["id"])
        moving_on(desk, [vault["id"] for vault in held])
        finished_one(desk)
        state = str(desk.world.platform.background.chain_folder.parent)
        report = Report(name)
        most = max(COUNTS)
        with (
            team(state, url, caller_of(desk), [a_send(desk, each["id"]) for each in held], most) as workers,
            servers(serve_platform, state, url, most) as ports,
            servers(serve_bare, state, url, most) as bare_ports,
        ):
            stage = Stage(desk, held, workers, ports, bare_ports, report)
            for _ in range(ROUNDS):
                stage.round(SECONDS / ROUNDS)
        report.show()


def main() -> None:
    print(
        f"proposals and approvals, 2 of 3, {VAULTS} vaults of {COINS} coins; {SECONDS:g} s each in {ROUNDS} rounds; client on the same cores"
    )
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url)
