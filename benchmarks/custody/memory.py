"""Whether a server leaks: resident memory at the start, in the middle and at the end of a steady load.

``BENCH_MEMORY_SECONDS=3600 python -m benchmarks custody`` takes the hour that the platform is to last.
"""

import os
import time
from typing import Any

from benchmarks.custody.load import a_send, caller_of
from benchmarks.custody.processes import CONTEXT, beside, propose
from benchmarks.custody.stage import databases, fill, staged
from benchmarks.idle import memory_mb
from custody.schemas.proposals import CreatePsbtRequest, PsbtQuery
from custody.server.calls import Ctx
from custody.server.people.people import enter
from custody.server.proposals.reading import page
from custody.server.rules.credentials import Caller

SECONDS = float(os.environ.get("BENCH_MEMORY_SECONDS", "40"))
COINS = 3_000
# Caches fill and pools open first: later growth counts.
WARM_SECONDS = 10.0


def _load(state: str, url: str, caller: Caller, body: dict[str, Any], pipe: Any) -> None:
    """Proposes, lists, is refused once the coins are locked, and lets the proposals expire, in a loop."""
    platform, request = beside(state, url), CreatePsbtRequest.model_validate(body)
    services, sizes = platform.services, []
    began, marks = time.perf_counter(), [WARM_SECONDS, WARM_SECONDS + SECONDS / 2, WARM_SECONDS + SECONDS]
    done = 0
    while marks:
        propose(platform, caller, request)
        with services.store.read() as db:
            access = enter(db, caller, request.workspace_id, frozenset(), services.tools.clock())
            page(Ctx(services, caller, db, access), PsbtQuery(workspace_id=request.workspace_id, limit=50))
        if done % 20 == 19:
            _end_all(platform)
        done += 1
        if time.perf_counter() - began > marks[0]:
            marks.pop(0)
            sizes.append((done, memory_mb(os.getpid())[0]))
    pipe.send(sizes)
    platform.close()


def _end_all(platform: Any) -> None:
    """Moves the clock past every proposal's expiry for one sweep, which frees their coins."""
    clock = platform.background.tools.clock
    now = clock.now
    clock.advance(days=15)
    platform.background.expiry()()
    clock.now = now


def main() -> None:
    with databases() as urls:
        for name, url in urls.items():
            with staged(url) as desk:
                fill(desk, COINS)
                state = desk.world.platform.background.settings.chain_folder.parent
                ours, theirs = CONTEXT.Pipe()
                task = (str(state), url, caller_of(desk), a_send(desk, desk.vault["id"]), theirs)
                process = CONTEXT.Process(target=_load, args=task)
                process.start()
                sizes = ours.recv()
                process.join()
            words = ", ".join(f"{size:.1f} MB after {done}" for done, size in sizes)
            print(f"{name:>10}  memory over {SECONDS:g} s of proposals: {words}")
