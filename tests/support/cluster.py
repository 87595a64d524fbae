"""A platform of several real processes over one database and one node, started, stopped and killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from custody.server.app import Platform, open_platform
from custody.server.chain.embedded import EmbeddedChain
from custody.server.opening import PlatformDependencies
from custody.server.settings import Settings
from tests.support.custody import Desk, desk_of, ok
from tests.support.fake_bitcoind import PASSWORD, USER, FakeBitcoind
from tests.support.platform import CHEAP, As, Clock, KeptMail, World

HERE = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "custody.server")
# Far more than anything takes on an idle machine.
PATIENCE = 300.0
# The shortest allowed, so that no process waits long after a kill.
LEASE_SECONDS = "1"


@dataclass
class Process:
    """One process of the platform; ``url`` once it listens."""

    program: subprocess.Popen[str]
    log: Path
    url: str = ""

    def await_start(self) -> None:
        assert self.program.stdout is not None
        line = self.program.stdout.readline()
        assert "on http" in line, self.log.read_text()
        self.url = line.split()[-1]

    def await_end(self) -> int:
        return self.program.wait(PATIENCE)


@dataclass
class Cluster:
    folder: Path
    database_url: str
    chain: EmbeddedChain
    node: FakeBitcoind
    platform: Platform
    stack: ExitStack
    apis: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)

    def start(self, *, apis: int = 0, workers: int = 0, version: Path = HERE) -> None:
        """Starts all at once, as a booting machine does. ``version``: the folder of their source."""
        new_apis = [self._start(version, "serve", "--no-workers", "--listen") for _ in range(apis)]
        new_workers = [self._start(version, "worker", "--health") for _ in range(workers)]
        for process in (*new_apis, *new_workers):
            process.await_start()
        self.apis += new_apis
        self.workers += new_workers

    def desk(self) -> Desk:
        """People who call the first process; the last signer calls the last one."""
        http = [
            self.stack.enter_context(httpx.Client(base_url=api.url, timeout=PATIENCE)) for api in self.apis
        ]
        desk = desk_of(World(self.platform, Clock(), KeptMail(), http[0]), self.chain)
        desk.signers["bob"] = As(http[-1], desk.signers["bob"].headers)
        desk.vault = ok(desk.create_vault())
        return desk

    def _start(self, version: Path, *arguments: str) -> Process:
        log = self.folder / f"{len(list(self.folder.glob('*.log')))}.log"
        environment = {
            **os.environ,
            "CUSTODY_DATABASE_URL": self.database_url,
            "CUSTODY_LEASE_SECONDS": LEASE_SECONDS,
            "CUSTODY_CHAIN_REGTEST": f"bitcoind:{self.node.url}",
            "CUSTODY_CHAIN_REGTEST_USER": USER,
            "CUSTODY_CHAIN_REGTEST_PASSWORD": PASSWORD,
        }
        with log.open("w") as stderr:
            program = subprocess.Popen(
                [*PROGRAM, *arguments, "127.0.0.1:0", "--state", str(self.folder / "state")],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment,
                cwd=version,
            )
        self.stack.callback(_put_down, program)
        return Process(program, log)


@contextmanager
def open_cluster(folder: Path, database_url: str) -> Iterator[Cluster]:
    """Only the node runs yet."""
    with ExitStack() as stack:
        chain = stack.enter_context(closing(EmbeddedChain(folder / "chain", clock=time.time)))
        node = FakeBitcoind(lambda: chain)
        stack.callback(node.close)
        settings = Settings(state=folder / "state", database_url=database_url)
        platform = open_platform(settings, PlatformDependencies(hasher=CHEAP))
        stack.callback(platform.close)
        yield Cluster(folder, database_url, chain, node, platform, stack)


def until(condition: Callable[[], bool], what: str) -> None:
    """Polls: other processes send no notice."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _put_down(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.wait()
    assert program.stdout is not None
    program.stdout.close()
