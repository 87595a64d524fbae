"""Proposals and approvals a second: the platform as a service and through HTTP, beside the bare database doing the same writes.

Everybody is measured several times in turns, and the median counts: what else the machine does meanwhile meets all of them.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle, islice
from statistics import median
from typing import Any

from benchmarks.custody.processes import Call, Done, Team, posted, servers, team
from benchmarks.custody.stage import SECONDS, databases, fill, moving_on, staged, vaults
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
    """Collects what each round shows, and prints each median beside that of the bare database with as many processes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rates: dict[tuple[str, str, int], list[float]] = defaultdict(list)

    def add(self, what: str, how: str, processes: int, rate: float) -> None:
        self._rates[what, how, processes].append(rate)

    def show(self) -> None:
        for (what, how, processes), rates in self._rates.items():
            rate, peer = median(rates), median(self._rates[what, "bare database", processes])
            print(
                f"{self._name:>10}  {what:<9} {how:<16} {processes} process(es) {rate:8.1f} a second  ÷ bare {rate / peer:5.2f}",
                flush=True,
            )


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
        report: Report,
    ) -> None:
        self._desk, self._workers, self._ports, self._report = desk, workers, ports, report
        self._vaults = vaults
        self._callers = {name: caller_of(desk, name) for name in SIGNERS}

    def round(self, seconds: float) -> None:
        for count in COUNTS:
            self._proposals(count, seconds)
            self._approvals(count)

    def _proposals(self, count: int, seconds: float) -> None:
        add, each = self._report.add, [seconds] * count
        add("proposal", "bare database", count, rate_of(self._workers.do("propose_bare", each)))
        done = self._workers.do("propose", each)
        add("proposal", "service", count, rate_of(done))
        if count == 1:
            add("proposal", "writers' turn", count, turns_of(done))
        headers = _headers(self._desk, "admin") | {"Content-Type": "application/json"}
        bodies = [json.dumps(a_send(self._desk, vault["id"])).encode() for vault in self._vaults]
        # As many as the service has just done, so that it takes about as long.
        most = max(8, sum(one.count for one in done))
        calls = [Call(headers, "/api/v1/create-psbt", body) for body in islice(cycle(bodies), most)]
        add("proposal", "HTTP", count, len(calls) / posted(self._ports[:count], calls))

    def _approvals(self, count: int) -> None:
        add = self._report.add
        add("approval", "bare database", count, rate_of(self._workers.do("approve_bare", [SIGNED] * count)))
        halves = [
            self._workers.do("approve", [self._asked(half)[place::count] for place in range(count)])
            for half in approvals(self._desk, self._vaults, SIGNED * count)
        ]
        add("approval", "service", count, 2 / sum(1 / rate_of(half) for half in halves))
        if count == 1:
            add("approval", "writers' turn", count, turns_of([done for half in halves for done in half]))
        signed = approvals(self._desk, self._vaults, SIGNED * count)
        seconds = sum(posted(self._ports[:count], self._calls(half)) for half in signed)
        add("approval", "HTTP", count, 2 * len(signed[0]) / seconds)

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
            servers(state, url, most) as ports,
        ):
            stage = Stage(desk, held, workers, ports, report)
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
