"""What long polls cost a server: its latency for other calls, its processor time and its memory.

The server is `custody serve` in a process of its own, on SQLite; the client has the same cores. Each person
polls the list of a workspace with 50 proposals, which do not change.
"""

import asyncio
import contextlib
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from pydantic import SecretStr

from benchmarks.idle import cpu_ms, memory_mb
from custody.server.app import Platform, open_platform
from custody.server.settings import Settings
from custody.server.setup import NewOrganisation, NewPerson, bootstrap
from custody.server.store.models import ProposalInputRow, ProposalRow, VaultRow
from multisig import Network

PEOPLE, POLLS_EACH, PROPOSALS = 25, 16, 50
WAIT_SECONDS, MEASURED_SECONDS, SETTLE_SECONDS, START_SECONDS = 50, 15.0, 40.0, 60
PASSWORD = secrets.token_hex(16)
PSBT_BYTES = 2_000
READING = "/api/v1/get-user-info"


@dataclass(frozen=True)
class Measured:
    """Milliseconds of a read; share of one core; megabytes."""

    median_ms: float
    p99_ms: float
    cpu_percent: float
    memory_mb: float


def main() -> None:
    quiet, polled = asyncio.run(_compare())
    print(
        f"\n{PEOPLE * POLLS_EACH} long polls on lists of {PROPOSALS} proposals, `custody serve` on SQLite, "
        f"{os.cpu_count()} cores with the client"
    )
    print(f"{'':24}{'median ms':>10}{'p99 ms':>10}{'core %':>8}{'MB':>8}")
    for name, found in (("no polls", quiet), (f"{PEOPLE * POLLS_EACH} wait", polled)):
        print(
            f"{name:24}{found.median_ms:10.1f}{found.p99_ms:10.1f}{found.cpu_percent:8.1f}{found.memory_mb:8.1f}"
        )
    print(f"a waiting poll holds {(polled.memory_mb - quiet.memory_mb) / PEOPLE / POLLS_EACH * 1024:.0f} kB")


async def _compare() -> tuple[Measured, Measured]:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        platform = open_platform(Settings(state=state))
        places = [_place(platform, number) for number in range(PEOPLE)]
        platform.close()
        with _server(state) as (url, pid):
            async with httpx.AsyncClient(
                base_url=url, timeout=WAIT_SECONDS + 20, limits=httpx.Limits(max_connections=None)
            ) as http:
                people = [await _sign_in(http, number) for number in range(PEOPLE)]
                quiet = await _measure(http, people[0], pid)
                async with _polling(http, list(zip(people, places, strict=True))):
                    await _settle(http, people[0], quiet.median_ms)
                    return quiet, await _measure(http, people[0], pid)


def _place(platform: Platform, number: int) -> int:
    """A workspace with pending proposals: only the rows that a list reads."""
    person = NewPerson(email=f"person{number}@example.org", password=SecretStr(PASSWORD), two_factor=False)
    names = NewOrganisation(organisation=f"O{number}", workspace="Main")
    placed = bootstrap(platform.services, names, Network.REGTEST, person)
    now = datetime.now(UTC)
    with platform.services.store.write() as db:
        vault = VaultRow(
            id=f"vault{number}", workspace_id=placed.workspace_id, created_by=placed.user_id, name="V",
            network="testnet", chain="regtest", m=2, n=3, script_type="wsh", descriptor=f"d{number}",
            address=f"a{number}", witness_script_hex="", limit_sats=0, cycle_period="W", cycle_day=1,
            next_receive_index=0, next_change_index=0, created_at=now, updated_at=now,
        )  # fmt: skip
        db.add(vault)
        db.flush()
        for index in range(PROPOSALS):
            name = f"proposal{number}-{index}"
            db.add(
                ProposalRow(
                    id=name,
                    family_id=name,
                    workspace_id=placed.workspace_id,
                    vault_id=vault.id,
                    tx_type="send",
                    status="PENDING",
                    created_by=placed.user_id,
                    psbt=bytes(PSBT_BYTES),
                    txid_expected=f"{number:032x}{index:032x}",
                    recipients=["bcrt1"],
                    amounts_sats=[1],
                    fee_sats=1,
                    fee_rate_sat_per_kvb=1_000,
                    contract_ids=[],
                    m=2,
                    n=3,
                    movement_sats=2,
                    expires_at=now + timedelta(days=1),
                    created_at=now + timedelta(milliseconds=index),
                    updated_at=now,
                )
            )
            db.flush()
            db.add(
                ProposalInputRow(
                    proposal_id=name,
                    input_index=0,
                    txid=f"{index:064x}",
                    vout=0,
                    amount_sats=3,
                    branch=0,
                    address_index=0,
                )
            )
    return placed.workspace_id


@contextmanager
def _server(state: Path) -> Iterator[tuple[str, int]]:
    port_file = state / "port"
    command = [
        sys.executable,
        "-m",
        "custody.server",
        "serve",
        "--state",
        str(state),
        "--listen",
        "127.0.0.1:0",
    ]
    limits = {"CUSTODY_CALLS_PER_MINUTE": "1000000"}
    with subprocess.Popen(
        [*command, "--port-file", str(port_file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **limits},
    ) as serving:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not port_file.exists():
                if serving.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the server did not begin to answer")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port_file.read_text().strip()}", serving.pid
        finally:
            serving.terminate()


async def _sign_in(http: httpx.AsyncClient, number: int) -> dict[str, str]:
    answer = await http.post(
        "/auth/login", json={"email": f"person{number}@example.org", "password": PASSWORD}
    )
    http.cookies.clear()
    return {"Authorization": f"Bearer {answer.raise_for_status().json()['token']}"}


@asynccontextmanager
async def _polling(http: httpx.AsyncClient, people: list[tuple[dict[str, str], int]]) -> AsyncIterator[None]:
    async def poll(headers: dict[str, str], workspace_id: int, etag: str) -> None:
        asked = {**headers, "If-None-Match": etag, "Prefer": f"wait={WAIT_SECONDS}"}
        while True:
            answer = await http.get("/api/v1/psbt", params={"workspace_id": workspace_id}, headers=asked)
            assert answer.status_code == 304, answer.text

    tasks = []
    for headers, workspace_id in people:
        known = await http.get("/api/v1/psbt", params={"workspace_id": workspace_id}, headers=headers)
        etag = known.raise_for_status().headers["ETag"]
        tasks += [asyncio.create_task(poll(headers, workspace_id, etag)) for _ in range(POLLS_EACH)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)


async def _settle(http: httpx.AsyncClient, headers: dict[str, str], usual_ms: float) -> None:
    """Waits until every poll has read its list: until three calls take no longer than five usual ones."""
    deadline, calm = time.monotonic() + SETTLE_SECONDS, 0
    while calm < 3 and time.monotonic() < deadline:
        started = time.perf_counter()
        (await http.get(READING, headers=headers)).raise_for_status()
        calm = calm + 1 if (time.perf_counter() - started) * 1000 < 5 * usual_ms else 0
        await asyncio.sleep(0.2)


async def _measure(http: httpx.AsyncClient, headers: dict[str, str], pid: int) -> Measured:
    """One caller who repeats a call with short pauses."""
    taken: list[float] = []
    began, used = time.perf_counter(), cpu_ms(pid)
    while time.perf_counter() - began < MEASURED_SECONDS:
        started = time.perf_counter()
        (await http.get(READING, headers=headers)).raise_for_status()
        taken.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.05)
    elapsed = time.perf_counter() - began
    taken.sort()
    return Measured(
        statistics.median(taken),
        taken[int(len(taken) * 0.99)],
        (cpu_ms(pid) - used) / elapsed / 10,
        memory_mb(pid)[0],
    )


if __name__ == "__main__":
    main()
