"""Every page of the console, in a workspace as large as they get beside one of a few rows, and what a browser
loads at first. A page's processor time is the server's and the database's; what it waits for is not in it.

``BENCH_ROUNDS`` says how often each page is asked for, ``BENCH_ROWS`` how many proposals there are: as many
coins, movements, rows of the audit log and deliveries, a tenth of entries and calls, a hundredth of vaults.
"""

import gc
import os
import time
from collections.abc import Sequence
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

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "20"))
AIM_MS = 100.0
AIM_BYTES = 100_000
FEW = Size(20, 20, 3, 20, 20, 20, 20, 3)
ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
MANY = Size(ROWS, ROWS // 10, ROWS // 100, ROWS, ROWS, ROWS, ROWS, ROWS // 10)
# Sent while they are read, as long as that takes.
FILES = (".csv", "/export")
HERE = "/w/{workspace_id}"
# Beside the rows themselves: the same page further on, filtered, or of the largest vault.
FURTHER = (
    HERE + "/proposals?status=PENDING",
    HERE + "/proposals?awaiting=me",
    HERE + "/proposals?after={middle}",
    HERE + "/proposals?search=acme",
    HERE + "/proposals?search=nothing-has-this",
    HERE + "/addresses?search=acme",
    HERE + "/audit?category=AUTH",
    HERE + "/vaults?name=99",
    HERE + "/evacuations/plan?exposed={key_id}",
    HERE + "/vaults/{many_movements}",
    HERE + "/vaults/{many_movements}/movements",
    HERE + "/vaults/{many_movements}/movements?kind=deposit",
    HERE + "/proposals/{paid}",
)


@dataclass(frozen=True)
class Spent:
    """Milliseconds of each answer. ``size``: bytes of its body."""

    wall: Sequence[float]
    processor: Sequence[float]
    size: int


def backends(store: Store) -> list[int]:
    """The processes of PostgreSQL that work for the platform."""
    with store.read() as db:
        if db.get_bind().dialect.name != "postgresql":
            return []
        asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        return list(db.scalars(text(asked)))


def measured(http: httpx.Client, store: Store, path: str) -> Spent | None:
    """None where the page refuses: what it is about is in another state."""
    if http.get(path).status_code != 200:
        return None
    wall, processor, size = [], [], 0
    for _ in range(ROUNDS):
        others = backends(store)
        before = sum(map(cpu_ms, others)) + time.process_time() * 1_000
        began = time.perf_counter()
        size = len(http.get(path).content)
        wall.append((time.perf_counter() - began) * 1_000)
        processor.append(sum(map(cpu_ms, others)) + time.process_time() * 1_000 - before)
    return Spent(wall, processor, size)


def measure(name: str, url: str) -> None:
    with staged(url) as desk, asgi_client(desk.world.platform.asgi) as http:
        store = desk.world.platform.services.store
        crowd = Crowd.of(desk)
        Visitor(http).sign_in("admin@example.org")
        few: dict[str, Spent | None] = {}
        for size in (FEW, MANY):
            began = time.perf_counter()
            crowd.grow(size)
            analyse(desk)
            # As a server has done by now.
            gc.freeze()
            print(f"{name:>10}  filled in {time.perf_counter() - began:.0f} s: {size}", flush=True)
            if size is MANY:
                print(f"{name:>10}  page: processor p50 (of a few rows), p95; wall p50, p95; bytes")
            for label, path in crowd.pages(*FURTHER).items():
                if label.endswith(FILES):
                    continue
                spent = measured(http, store, path)
                if size is MANY:
                    _tell(name, label, few.get(label), spent)
                few[label] = spent
        _first(name, http, crowd)


def _p95(spent: Spent | None) -> float:
    return quantiles(spent.processor, n=20)[18] if spent is not None else 0.0


def _tell(name: str, label: str, few: Spent | None, many: Spent | None) -> None:
    if many is None:
        return
    of_few = f"{median(few.processor):6.1f}" if few is not None else "     -"
    mark = " " if _p95(many) <= AIM_MS else "!"
    print(
        f"{name:>10} {mark}{median(many.processor):7.1f} ({of_few}) {_p95(many):7.1f};"
        f" {median(many.wall):7.1f} {quantiles(many.wall, n=20)[18]:7.1f}; {many.size:>9,}"
        f"  {label}",
        flush=True,
    )


def _first(name: str, http: httpx.Client, crowd: Crowd) -> None:
    """With the files of the frame, as a browser without any of them loads it."""
    size = sum(int(http.get(f"{ROOT}/static/{each}").headers["content-length"]) for each in ASSETS.types)
    page = len(http.get(f"{ROOT}/w/{crowd.desk.workspace_id}/proposals").content)
    verdict = "within" if size + page <= AIM_BYTES else "above"
    print(f"{name:>10}  first load of the proposals: {size + page:,} bytes, {size:,} of it files ({verdict})")


def main() -> None:
    print(f"the console's pages, {ROUNDS} answers each; load {os.getloadavg()[0]:.1f}")
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url)
