"""Three hundred hours of a daemon in some minutes: its resources at the start, in the middle and at the end.

The clock of the daemon's event loop, and with it every timer, runs 2,400 times as fast as the machine's. Its
devices are virtual ones in processes of their own, behind the real bridge and its confined workers, and take
real time; so the bridge's deadlines are multiplied too, except for the idle time of workers. Every twenty
minutes one event happens, in turn: a proposal is approved and signed, the platform fails for five minutes, a
device is unplugged and plugged in again.
"""

import asyncio
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import httpx

from benchmarks.daemon import below
from benchmarks.devices.desk import Device
from benchmarks.idle import memory_mb
from custody.schemas.proposals import ProposalStatus, TxType
from firmware_bridge import Bridge, Deadlines, DeviceState
from firmware_bridge.model import Endpoint, Family
from multisig import MultisigError, Psbt, build_psbt, encode_address, inspect, signer_progress
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import OwnKey, Pin, Snapshot, VaultClaim
from signerd.daemon.service import Daemon
from signerd.journal import Journal
from tests.support import virtual, wallets
from tests.support.fake_platform import FakePlatform

SPEED = float(os.environ.get("BENCH_SPEED", "2400"))
HOURS = float(os.environ.get("BENCH_HOURS", "300"))
ROUND_SECONDS = 20 * 60.0
FAULT_SECONDS = 5 * 60.0
FAMILIES = (Family.TREZOR, Family.COLDCARD)
VAULT, VAULT_ID = virtual.vault(), "vault-1"
OURS = virtual.seed().fingerprint
# Rounds until an ended proposal is taken from the platform's list.
REMEMBERED = 6
# In the machine's time, which may be busy.
PATIENCE = 120.0
# The fork server, and multiprocessing's tracker.
ALWAYS_CHILDREN = 2


class _Selector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> Any:
        return super().select(None if timeout is None else timeout / SPEED)


class _Ahead(asyncio.SelectorEventLoop):
    """A loop whose clock goes ``SPEED`` times as fast."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        super().__init__(_Selector())

    def time(self) -> float:
        return self._started + (time.monotonic() - self._started) * SPEED


def deadlines() -> Deadlines:
    usual = Deadlines()
    kept = {"idle", "retry", "retry_shared"}
    slowed = {one.name: getattr(usual, one.name) * SPEED for one in fields(usual) if one.name not in kept}
    return replace(usual, **slowed)


class Platform(FakePlatform):
    """A platform of the virtual devices' vault. It answers long polls, and forgets ended proposals."""

    fault: Callable[[], httpx.Response] | None = None

    async def wait_and_answer(self, request: httpx.Request) -> httpx.Response:
        seconds = float(request.headers.get("prefer", "wait=0").removeprefix("wait="))
        until = asyncio.get_running_loop().time() + seconds
        while True:
            self.requests.clear()
            answer = self.answer(request) if self.fault is None else self.fault()
            if answer.status_code != httpx.codes.NOT_MODIFIED or asyncio.get_running_loop().time() >= until:
                return answer
            await asyncio.sleep(min(seconds, 10.0))

    def _is_signed(self, _snapshot: Snapshot, text: str) -> bool:
        try:
            return signer_progress(Psbt.parse(text), VAULT, OURS).is_complete
        except MultisigError:
            return False

    def offer(self, number: int) -> str:
        """Offers a payment unlike any other. Returns its id."""
        psbt_id = f"p-{number}"
        # Another amount makes another coin.
        coin = wallets.fund(VAULT, 605_000 + number, index=number % 250)
        psbt = build_psbt(VAULT, [coin], [wallets.pay(600_000 + number)], 0)
        self.proposals[psbt_id] = snapshot_of(psbt, psbt_id)
        return psbt_id

    def end(self, psbt_id: str) -> None:
        """Confirms it; forgets older ones, here and in the file of submissions."""
        ended = self.proposals[psbt_id]
        self.proposals[psbt_id] = replace(
            ended, status=ProposalStatus.CONFIRMED, collected=2, txid=ended.txid_expected, confirmations=6
        )
        for old in list(self.proposals)[:-REMEMBERED]:
            del self.proposals[old]
        told = [line for line in self.told() if line["psbt_id"] in self.proposals]
        (self.folder / "told.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))


def snapshot_of(psbt: Psbt, psbt_id: str) -> Snapshot:
    seen = inspect(psbt, VAULT, network=virtual.NETWORK)
    return Snapshot(
        psbt_id=psbt_id,
        workspace_id=1,
        workspace_network="testnet",
        vault_id=VAULT_ID,
        kind=TxType.SEND,
        status=ProposalStatus.PENDING,
        psbt=psbt.to_bytes(),
        recipients=tuple(encode_address(p.script_pubkey, virtual.NETWORK) or "" for p in seen.payments),
        amounts=tuple(int(p.amount) for p in seen.payments),
        op_return=None,
        fee=seen.fee or 0,
        txid_expected=seen.txid,
        description="",
        created_by="2",
        required=2,
        collected=0,
    )


def prepare(state: Path) -> None:
    """A state folder with registered keys and a pinned vault."""
    key = virtual.holder().vault_key()
    claim = VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor, 2, 3, VAULT.address(0, 0))
    with Journal(state, network=virtual.NETWORK) as journal:
        journal.add_own_keys((OwnKey(key, "vault", 0),), "key-1", Note("registered", "key-1"))
        journal.learn(claim)
        journal.add_pin(Pin(VAULT_ID, 1, "Treasury", VAULT, key), Note("pinned", VAULT_ID))


# --- the daemon ---------------------------------------------------------------------------------------------


async def daemon(folder: Path, endpoints: list[str]) -> None:
    """Obeys the words on standard input, and prints a line when each is done."""
    from tests.support.daemons import daemon_at, make_config

    loop, state = asyncio.get_running_loop(), folder / "s"
    state.mkdir(mode=0o700)
    prepare(state)
    (folder / "p").mkdir()
    platform = Platform(folder / "p", vault=VAULT)
    places = [Endpoint.parse(text) for text in endpoints]
    outside = httpx.MockTransport(platform.wait_and_answer)
    config = make_config(platform={"url": "http://127.0.0.1:1", "long_poll_seconds": 50})
    async with (
        Bridge(network=virtual.NETWORK, endpoints=places, usb=False, deadlines=deadlines()) as bridge,
        daemon_at(
            state,
            platform,
            bridge,
            config=config,
            sleep=asyncio.sleep,
            clock=loop.time,
            transport=outside,
        ) as service,
    ):
        story, began, number = Story(service, bridge, platform), loop.time(), 0
        while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            await story.play(word, number)
            number += 1
            await asyncio.sleep(began + number * ROUND_SECONDS - loop.time())
            print(json.dumps({"hours": (loop.time() - began) / 3600}), flush=True)


@dataclass
class Story:
    service: Daemon
    bridge: Bridge
    platform: Platform

    async def play(self, word: str, number: int) -> None:
        match word:
            case "proposal":
                await self._proposal(number)
            case "fault":
                await self._fault(number)
            case "gone":
                await self._devices(len(FAMILIES) - 1)
            case "back" | "ready":
                await self._devices(len(FAMILIES))

    async def _proposal(self, number: int) -> None:
        psbt_id = self.platform.offer(number)
        await self._until(lambda: self._state(psbt_id) is State.WAITING_PERSON, psbt_id)
        shown = await self.service.proposal(psbt_id)
        await self.service.approve(psbt_id, shown.digest, frozenset(shown.to_acknowledge))
        await self._until(lambda: self._state(psbt_id) is State.SUBMITTED, psbt_id)
        self.platform.end(psbt_id)
        await self._until(lambda: self._state(psbt_id) not in {State.SUBMITTED, None}, psbt_id)

    def _state(self, psbt_id: str) -> State | None:
        return next((one.state for one in self.service.journal.records() if one.psbt_id == psbt_id), None)

    async def _fault(self, number: int) -> None:
        def unreachable() -> httpx.Response:
            raise httpx.ConnectError("no way")

        faults = (
            unreachable,
            lambda: httpx.Response(502, text="<html>bad gateway</html>"),
            lambda: httpx.Response(200, text="[{"),
            lambda: httpx.Response(401, json={"code": "TOKEN_EXPIRED", "title": "No", "status": 401}),
        )
        self.platform.fault = faults[number % len(faults)]
        await asyncio.sleep(FAULT_SECONDS)
        self.platform.fault = None
        if not self.service.account.signed_in.is_set():
            from tests.support.fake_platform import EMAIL, PASSWORD

            await self.service.sign_in(EMAIL, PASSWORD)
        await self._until(lambda: self.service.follower.reachable, "the platform")

    async def _devices(self, wanted: int) -> None:
        until = time.monotonic() + PATIENCE
        while sum(one.state is DeviceState.READY for one in await self.bridge.list()) != wanted:
            if time.monotonic() > until:
                raise RuntimeError(f"not {wanted} ready: {await self.bridge.list()}")
            await asyncio.sleep(1.0)

    async def _until(self, what: Callable[[], bool], about: str) -> None:
        until = time.monotonic() + PATIENCE
        while not what():
            if time.monotonic() > until:
                raise RuntimeError(f"{about}: {self.service.feed.since(0)[-5:]}")
            await asyncio.sleep(1.0)


# --- what is measured ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """The daemon's resources. Its children: the fork server, the resource tracker, and live workers."""

    hours: float
    resident_mb: float
    shared_mb: float
    descriptors: int
    threads: int
    children: int
    children_mb: float


def held(pid: int, hours: float) -> Held:
    # A worker takes real time to end, while the daemon's clock runs ahead.
    until = time.monotonic() + PATIENCE
    while len(below(pid)) > 1 + ALWAYS_CHILDREN and time.monotonic() < until:
        time.sleep(0.02)
    resident, shared = memory_mb(pid)
    children = [size for child in below(pid)[1:] if (size := _size(child)) is not None]
    descriptors, threads = (len(list(Path(f"/proc/{pid}/{what}").iterdir())) for what in ("fd", "task"))
    return Held(hours, resident, shared, descriptors, threads, len(children), sum(children))


def _size(pid: int) -> float | None:
    """None where the process has ended."""
    try:
        return memory_mb(pid)[1]
    except OSError:
        return None


@contextmanager
def started(folder: Path, devices: list[Device]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.hours", str(folder), *(str(one.endpoint) for one in devices)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield running
    finally:
        assert running.stdin is not None
        running.stdin.close()
        running.wait(60)


def rounds(running: subprocess.Popen[str], devices: list[Device]) -> Iterator[Held]:
    """The resources at the beginning, and after each turn of four rounds."""

    def play(word: str) -> float:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(word + "\n")
        running.stdin.flush()
        line = running.stdout.readline()
        if not line:
            raise RuntimeError(f"the daemon ended at {word}")
        return float(json.loads(line)["hours"])

    def tell(device: Device, verb: str) -> None:
        assert device.process.stdin is not None
        device.process.stdin.write(json.dumps({verb: True}) + "\n")
        device.process.stdin.flush()

    yield held(running.pid, play("ready"))
    for turn in range(1, round(HOURS * 3600 / ROUND_SECONDS / 4) + 1):
        device = devices[turn % len(devices)]
        for word, verb in (("proposal", None), ("fault", None), ("gone", "unplug"), ("back", "plug")):
            if verb is not None:
                tell(device, verb)
            hours = play(word)
        yield held(running.pid, hours)


def main() -> None:
    if sys.platform != "linux":
        print("hours: only Linux tells what a process holds")
        return
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hours") as name, ExitStack() as stack:
        folder, devices = Path(name), []
        for family in FAMILIES:
            devices.append(Device.start(family, folder, listen=_place(family, folder)))
            stack.callback(devices[-1].stop)
        running = stack.enter_context(started(folder, devices))
        seen = list(rounds(running, devices))
        journal = sum(path.stat().st_size for path in (folder / "s").glob("journal*")) / 1e6
    print(f"{seen[-1].hours:.0f} hours of a daemon in {(time.monotonic() - began) / 60:.0f} minutes")
    names = tuple(asdict(seen[0]))
    print("".join(f"{one:>13}" for one in names))
    # The first turn of everything loads what is loaded once.
    for one in (seen[1], *(seen[len(seen) * part // 4] for part in (1, 2, 3)), seen[-1]):
        print("".join(f"{value:13.1f}" for value in asdict(one).values()))
    print(f"the journal on the disk: {journal:.1f} MB")


def _place(family: Family, folder: Path) -> str | None:
    return str(folder / "coldcard.sock") if family is Family.COLDCARD else None


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_Ahead) as runner:
        runner.run(daemon(Path(sys.argv[1]), sys.argv[2:]))
