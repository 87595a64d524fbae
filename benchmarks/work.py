"""Proposals that cost work, not bytes (S34): a start and a view at three sizes, each twice the one before.

In milliseconds of the processor, of the loop's thread. ``start``: until the daemon answers, as systemd waits
for it. ``view``: one proposal, with its review, right after the start. ``blocked``: the longest turn of the
event loop until all that waits was judged again. What grows linearly doubles from one line to the next.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from custody.common.interpreter import settle
from multisig import KeyOrigin, Psbt, Vault, build_psbt
from multisig.psbt import PsbtOutput
from signerd.core.audit import Note
from signerd.core.signing import imported_snapshot
from signerd.core.states import State
from signerd.core.values import Imported, VaultClaim
from signerd.journal import Journal
from tests.support.daemons import daemon_at, prepare
from tests.support.desk import NETWORK, VAULT, make_pin, own_keys, snapshot_of
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import Signer, fund, make_vault, pay

MANY_KEYS = 15
BEAT_SECONDS = 0.001
QUIET_MS = 2.0


@dataclass(frozen=True)
class Times:
    """Milliseconds of the loop's thread."""

    start: float
    view: float
    blocked: float


@contextmanager
def opened(state: Path) -> Iterator[Journal]:
    with Journal(state, network=NETWORK) as journal:
        yield journal


def equal_outputs(count: int, coin: int) -> Psbt:
    """Spends one coin into ``count`` equal outputs."""
    return build_psbt(VAULT, [fund(VAULT, count * 600 + 2_000, salt=coin)], [pay(600)] * count, 0)


def from_an_app(state: Path, count: int) -> None:
    with opened(state) as journal:
        for number in range(3):
            imported = Imported("app", "app-1", int(time.time()) + 86_400)
            raw = equal_outputs(count, number).to_bytes()
            made = imported_snapshot(f"b-{number}", raw, imported, [make_pin()], own_keys(), NETWORK)
            journal.import_psbt(made)


def from_the_platform(state: Path, count: int) -> None:
    with opened(state) as journal:
        for number in range(3):
            journal.poll(snapshot_of(equal_outputs(count, number), f"p-{number}"))


def rivals(state: Path, count: int) -> None:
    """All spend one coin, each with a hundred outputs."""
    coin = fund(VAULT, 1_000_000, salt=1)
    with opened(state) as journal:
        for number in range(count):
            outputs = [pay(1_000 + number)] * 100
            journal.poll(snapshot_of(build_psbt(VAULT, [coin], outputs, 0), f"p-{number}"))


def false_origins(state: Path, count: int) -> None:
    """Three proposals of which every output is said to come back."""
    with opened(state) as journal:
        for number in range(3):
            psbt = equal_outputs(count, number)
            outputs = [_said_ours(output, index) for index, output in enumerate(psbt.outputs)]
            journal.poll(snapshot_of(replace(psbt, outputs=tuple(outputs)), f"p-{number}"))


def _said_ours(output: PsbtOutput, index: int) -> PsbtOutput:
    key = VAULT.cosigners[0]
    origin = KeyOrigin(key.fingerprint, key.origin.path / 1 / index)
    return replace(output, derivations={key.xpub.derive_public_key(1, index): origin})


def vaults(state: Path, count: int) -> None:
    with opened(state) as journal:
        for number in range(count):
            vault = vault_of_many(number)
            name, address = f"Vault {number}", vault.address(0, 0)
            journal.learn(VaultClaim(f"v-{number}", 1, name, vault.descriptor, 8, MANY_KEYS, address))
        journal.poll(snapshot_of(equal_outputs(2, 1), "p-0"))


def vault_of_many(number: int) -> Vault:
    return make_vault([Signer(f"key {each}") for each in range(MANY_KEYS)], 8, account=number)


def chain(state: Path, count: int) -> None:
    with opened(state) as journal, journal.noted("bench", Note("bench", "last")):
        for number in range(count):
            facts = {"name": "x" * 200, "number": number}
            journal._append(Note("vault-claim", f"v-{number}", facts))  # noqa: SLF001 - one transaction for all
    with opened(state) as journal:
        journal.poll(snapshot_of(equal_outputs(2, 1), "p-0"))


CASES: Sequence[tuple[str, Callable[[Path, int], None], tuple[int, ...]]] = (
    ("3 of an app, equal outputs", from_an_app, (625, 1_250, 2_500)),
    ("3 of the platform, equal outputs", from_the_platform, (787, 1_575, 3_150)),
    ("proposals over one coin", rivals, (75, 150, 300)),
    ("3 proposals, false origins", false_origins, (787, 1_575, 3_150)),
    ("vaults of 15 keys", vaults, (499, 999, 1_999)),
    ("entries of the chain", chain, (25_000, 50_000, 100_000)),
)


async def longest_gap(until_quiet_for: int = 50) -> float:
    """Of the longest turn of the loop, until it has rested."""
    longest, quiet = 0.0, 0
    while quiet < until_quiet_for:
        began = time.thread_time()
        await asyncio.sleep(BEAT_SECONDS)
        gap = (time.thread_time() - began) * 1000
        longest, quiet = max(longest, gap), 0 if gap > QUIET_MS else quiet + 1
    return longest


async def measure(state: Path) -> Times:
    began = time.thread_time()
    async with daemon_at(state, FakePlatform(state), FakeBridge(), sign_in=False) as daemon:
        await asyncio.sleep(0)
        await daemon.status()
        settle()  # as the program does once it serves
        started = time.thread_time()
        waiting = daemon.journal.ids(list(State))
        await daemon.proposal(waiting[0])
        seen = time.thread_time()
        blocked = await longest_gap()
        # The whole journal is checked once it serves; a later start reads on from there.
        await daemon.runner.checked.wait()
    return Times((started - began) * 1000, (seen - started) * 1000, blocked)


def main() -> None:
    wanted = os.environ.get("BENCH_CASES", "")
    print(f"{'':>34} {'size':>7} {'start ms':>9} {'view ms':>9} {'blocked ms':>10}")
    for name, fill, sizes in CASES:
        for size in sizes if wanted in name else ():
            with tempfile.TemporaryDirectory(prefix="bench") as folder:
                state = Path(folder)
                prepare(state)
                fill(state, size)
                # The first start records the device's screen, by which everything is judged once more.
                asyncio.run(measure(state))
                took = asyncio.run(measure(state))
            print(f"{name:>34} {size:7,} {took.start:9.0f} {took.view:9.0f} {took.blocked:10.0f}", flush=True)


if __name__ == "__main__":
    main()
