"""Every page of the console, in a workspace as large as they get, and the size of a first load. A page's
processor time is the server's and the database's, without waiting.

``BENCH_ROUNDS`` says how often each page is requested, ``BENCH_ROWS`` how many proposals there are: as many
coins, movements, rows of the audit log and deliveries, a tenth of entries and calls, a hundredth of vaults.
"""

import gc
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import httpx
from sqlalchemy import text

from benchmarks.custody.stage import analyse, databases, staged
from benchmarks.idle import cpu_ms
from custody.server.console.application import ASSETS, ROOT
from custody.server.store import Store
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.crowd import Crowd, Size

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "60"))
AIM_MS = 100.0
AIM_BYTES = 100_000
ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
MANY = Size(ROWS, ROWS // 10, ROWS // 100, ROWS, ROWS, ROWS, ROWS, ROWS // 10)
# Streamed while they are read, as long as that takes.
FILES = (".csv", "/export")
HERE = "/w/{workspace_id}"
# Further requests: a later page, a filter, or the largest vault.
FURTHER = (
    HERE + "/proposals?status=PENDING",
    HERE + "/proposals?awaiting=me",
    HERE + "/proposals?after={middle}",
    HERE + "/proposals?search=acme",
    HERE + "/proposals?search=nothing-has-this",
    HERE + "/addresses?search=acme",
    HERE + "/audit?category=AUTH",
    HERE + "/vaults?name=99",
    HERE + "/vaults/{many_movements}",
    HERE + "/vaults/{many_movements}/movements",
    HERE + "/vaults/{many_movements}/movements?kind=deposit",
    # The API refuses more names than this.
    HERE + "/vaults/{many_movements}/movements?label=acme%2012",
    HERE + "/vaults/{many_movements}/movements?label=nothing-has-this",
    HERE + "/proposals/{paid}",
)


@dataclass(frozen=True)
class Spent:
    """Milliseconds of each answer. ``size``: bytes of its body."""

    processor: Sequence[float]
    size: int

    @property
    def p95(self) -> float:
        return quantiles(self.processor, n=20, method="inclusive")[18]

    def __str__(self) -> str:
        return f"{median(self.processor):.0f}, {self.p95:.0f}, {max(self.processor):.0f}"


def backends(store: Store) -> list[int]:
    """PostgreSQL's backend processes of this database."""
    with store.read() as db:
        if db.get_bind().dialect.name != "postgresql":
            return []
        asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        return list(db.scalars(text(asked)))


def measured(http: httpx.Client, store: Store, path: str) -> Spent | None:
    """None where the page refuses because its record is in another state."""
    if http.get(path).status_code != 200:
        return None
    processor, size = [], 0
    for _ in range(ROUNDS):
        others = backends(store)
        before = sum(map(cpu_ms, others)) + time.process_time() * 1_000
        size = len(http.get(path).content)
        processor.append(sum(map(cpu_ms, others)) + time.process_time() * 1_000 - before)
    return Spent(processor, size)


def measure(name: str, url: str) -> tuple[dict[str, Spent], int]:
    """Figures by the page's path in the console's table, and the size of the files."""
    with staged(url) as desk, asgi_client(desk.world.platform.asgi) as http:
        store = desk.world.platform.services.store
        crowd = Crowd.of(desk)
        Visitor(http).sign_in("admin@example.org")
        began = time.perf_counter()
        crowd.grow(MANY)
        analyse(desk)
        # As in a server that has run for a while.
        gc.freeze()
        print(f"{name} filled in {time.perf_counter() - began:.0f} s: {MANY}", flush=True)
        spent = {
            label: measured(http, store, path)
            for label, path in crowd.pages(*FURTHER).items()
            if not label.endswith(FILES)
        }
        print(f"{name} measured; load {os.getloadavg()[0]:.1f}", flush=True)
        return {label: each for label, each in spent.items() if each is not None}, _files(http)


def _files(http: httpx.Client) -> int:
    """Bytes of the frame's files, as a browser without a cache loads them."""
    return sum(int(http.get(f"{ROOT}/static/{each}").headers["content-length"]) for each in ASSETS.files)


def _tell(found: Mapping[str, Mapping[str, Spent]], files: int) -> None:
    """A table for docs/understand/performance.md: the slowest first."""
    print(f"\nwith {files / 1_000:.0f} kB of files at first; processor ms: median, p95, most")
    print(f"\n| page | kB at first | {' | '.join(found)} |\n|---|---|{'---|' * len(found)}")
    pages = {label: [each.get(label) for each in found.values()] for of in found.values() for label in of}

    def slowest(spent: Sequence[Spent | None]) -> float:
        return max(each.p95 for each in spent if each is not None)

    for label, spent in sorted(pages.items(), key=lambda each: -slowest(each[1])):
        size = max(each.size for each in spent if each is not None) + files
        mark = "" if slowest(spent) <= AIM_MS and size <= AIM_BYTES else " **above the aim**"
        cells = " | ".join("-" if each is None else str(each) for each in spent)
        name = label.replace("{workspace_id:int}", "W").replace("{workspace_id}", "W").replace(":int", "")
        print(f"| `{name}`{mark} | {size / 1_000:.0f} | {cells} |")


def main() -> None:
    print(f"the console's pages, {ROUNDS} answers each; load {os.getloadavg()[0]:.1f}", flush=True)
    found, files = {}, 0
    with databases() as urls:
        for name, url in urls.items():
            found[name], files = measure(name, url)
    _tell(found, files)
