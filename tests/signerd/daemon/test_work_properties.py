"""S34: whoever makes work, no turn of the daemon's loop has more of it than one look at the largest proposal.

Work is counted, never timed: each function that is called, of Python's or of C, and each step of SQLite's
machine, which reads a row at most.
"""

import asyncio
import sqlite3
import sys
import threading
from asyncio.events import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from multisig import KeyOrigin, build_psbt
from multisig.psbt import PsbtOutput
from signerd import feed
from signerd.core.audit import Note
from signerd.core.values import Snapshot, VaultClaim
from signerd.journal import rows
from signerd.journal.storage import check_whole
from tests.support.daemons import daemon_at, prepare, until
from tests.support.desk import VAULT, open_journal, snapshot_of
from tests.support.examples import examples
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import THREE, fund, make_vault, pay


@dataclass(frozen=True)
class World:
    """What there is at a start: proposals over one coin, vaults, entries of the chain of decisions.
    ``false``: each output is said to come back.
    """

    rivals: int
    outputs: int
    equal: bool
    false: bool
    vaults: int
    entries: int

    @property
    def one_look(self) -> int:
        """At a proposal: for each of its outputs, each rival, and each row that both have."""
        shared = 2 if self.equal else self.outputs
        return 8_000 + 280 * self.outputs + 350 * self.rivals + 25 * shared * self.rivals

    def proposal(self, number: int) -> Snapshot:
        amounts = [1_000 + number + (0 if self.equal else each) for each in range(self.outputs - 1)]
        coin, rest = fund(VAULT, 1_000_000, salt=1), 998_000 - number - sum(amounts)
        psbt = build_psbt(VAULT, [coin], [pay(each) for each in (*amounts, rest)], 0)
        if self.false:
            said = (_said_ours(output, index) for index, output in enumerate(psbt.outputs))
            psbt = replace(psbt, outputs=tuple(said))
        return snapshot_of(psbt, f"p-{number}")

    def fill(self, state: Path) -> None:
        prepare(state)
        with open_journal(state) as journal:
            for number in range(self.rivals):
                journal.poll(self.proposal(number))
            for number in range(self.vaults):
                vault = make_vault(THREE, account=number)
                name, address = f"Vault {number}", vault.address(0, 0)
                journal.learn(VaultClaim(f"v-{number}", 1, name, vault.descriptor, 2, 3, address))
            with journal.noted("entries", Note("test", "last")):
                for number in range(self.entries):
                    journal._append(Note("test", f"entry {number}"))
        # As a daemon does once it serves.
        check_whole(state, lambda: False)


def _said_ours(output: PsbtOutput, index: int) -> PsbtOutput:
    key = VAULT.cosigners[0]
    origin = KeyOrigin(key.fingerprint, key.origin.path / 1 / index)
    return replace(output, derivations={key.xpub.derive_public_key(1, index): origin})


@dataclass
class Meter:
    """``turns``: the work of each turn of the loop. Of another thread's nothing is counted."""

    thread: int = field(default_factory=threading.get_ident)
    work: int = 0
    began: int = 0
    turns: list[int] = field(default_factory=list)

    def called(self, frame, event: str, _of: object) -> None:
        self.work += event in {"call", "c_call"}
        if frame.f_code is Handle._run.__code__ and event == "call":
            self.began = self.work
        elif frame.f_code is Handle._run.__code__ and event == "return":
            self.turns.append(self.work - self.began)

    def stepped(self) -> int:
        self.work += threading.get_ident() == self.thread
        return 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        real = sqlite3.connect

        def connect(*given, **named) -> sqlite3.Connection:
            made = real(*given, **named)
            made.set_progress_handler(self.stepped, 1)
            return made

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("signerd.journal.storage.sqlite3.connect", connect)
            sys.setprofile(self.called)
            try:
                yield
            finally:
                sys.setprofile(None)

    async def of(self, asked) -> int:
        before = self.work
        await asked
        return self.work - before


async def measured(world: World, state: Path) -> dict[str, int]:
    rows.vault_of.cache_clear()
    meter = Meter()
    with meter.counting():
        async with daemon_at(state, FakePlatform(state), FakeBridge(), sign_in=False) as daemon:
            await asyncio.sleep(0)
            ready = meter.work
            await daemon.status()
            view = await meter.of(daemon.proposal("p-0"))
            await until(daemon.runner.checked.is_set)
            for _ in range(4 * world.rivals + 20):
                await asyncio.sleep(0)
            again = await meter.of(daemon.status())
    counted = {"ready": ready, "status again": again, "view": view}
    return {**counted, "turn": max(meter.turns), "all": meter.work}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path_factory) -> None:
    """Few rivals are many here, and a list takes a turn for each entry. What is imported once is no work."""
    monkeypatch.setattr(rows, "MOST_COMPARED", 1)
    monkeypatch.setattr(feed, "AT_ONCE_SECONDS", 0)
    seen_at(World(1, 1, equal=False, false=True, vaults=1, entries=0), tmp_path_factory.mktemp("first"))


def seen_at(world: World, folder: Path) -> dict[str, int]:
    folder.chmod(0o700)
    world.fill(folder)
    return asyncio.run(measured(world, folder))


WORLDS = st.builds(
    World,
    rivals=st.sampled_from([12, 12, 12, 1]),
    outputs=st.sampled_from([30, 30, 30, 1]),
    equal=st.booleans(),
    false=st.sampled_from([False, False, False, True]),
    vaults=st.sampled_from([20, 20, 0]),
    entries=st.sampled_from([300, 300, 0]),
)


@settings(
    max_examples=examples(12),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(world=WORLDS)
@example(world=World(12, 30, equal=True, false=False, vaults=0, entries=0))
def test_s34_no_turn_has_more_work_than_one_look_and_a_start_has_none_of_what_waits(
    tmp_path_factory, world: World
) -> None:
    """And however long the chain of decisions is, none of it is read again before the daemon answers."""
    bounds = {
        "ready": 4_000 + 150 * world.rivals,
        "status again": 4_000 + 50 * world.rivals + 1_200 * world.vaults,
        "view": world.one_look,
        "turn": world.one_look,
        "all": 50_000 + 2 * world.rivals * world.one_look + 5_000 * world.vaults,
    }
    seen = seen_at(world, tmp_path_factory.mktemp("state"))
    assert {name: work for name, work in seen.items() if work > bounds[name]} == {}, (seen, bounds)
