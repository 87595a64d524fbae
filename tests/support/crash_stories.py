"""What the daemon does while the crash harness kills it: three stories that together pass every write
and every call.

A story continues from whatever it finds, as a person does after a restart, and ends when all is done.
What the platform received and how often the device was asked is kept in files, which outlive the daemon.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from custody.common.private_files import write_private
from firmware_bridge import Locked, RefusedByPerson
from multisig import ChangeTo, DerivationPath, Psbt, build_psbt, sats
from signerd.core import events
from signerd.core.audit import Entry, first_fault
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import PlatformUnreachable
from signerd.journal import Journal
from signerd.runtime import FaultPoint, no_fault
from tests.support.daemons import MemoryStore, approve, daemon_at, prepare, state_of, until
from tests.support.desk import NETWORK, VAULT, VAULT_ID, open_journal, reviewed, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge, OnProgress
from tests.support.fake_platform import FakePlatform, listed_key, problem
from tests.support.wallets import ALICE, fund, pay

PSBT_ID = "p-1"
ASKING = (State.WAITING_PERSON, State.INTERRUPTED)
# Between the device's approval and the stored signature nothing is stored: the person is asked again.
UNKEPT = frozenset({"device:after:sign", "journal:before:DeviceReturned"})
# From the device's answer to the write that stores it; other points in between are the same kill.
KEPT_BY = {
    "device:after:sign": "journal:after:DeviceReturned",
    "device:after:sign_text": "journal:after:own-keys",
}
# Nothing is stored between the device's proof and the stored registration either.
UNPROVEN = frozenset(
    {
        "device:after:sign_text",
        "platform:before:register_key",
        "network:before:register-key",
        "network:after:register-key",
        "platform:before:keys",
        "network:before:keys",
        "network:after:keys",
        "platform:after:keys",
        "journal:before:own-keys",
    }
)


@dataclass(frozen=True)
class Story:
    """``live`` returns when all is done; ``faults`` returns the broken invariants.

    ``again``: points at which it is killed each time, though an earlier story passed them.
    """

    name: str
    prepare: Callable[[Path], None]
    live: Callable[[Path, FaultPoint], Awaitable[None]]
    faults: Callable[[Path, str], list[str]]
    again: frozenset[str] = frozenset()


class FileMemory(MemoryStore):
    """A secret store in a file, which outlives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path.read_text() if path.exists() else None)

    def save(self, secret: str) -> None:
        super().save(secret)
        write_private(self._path, secret.encode())


class Watched(httpx.AsyncBaseTransport):
    """A fault point before and after every request, also of those that the client makes by itself."""

    def __init__(self, inner: httpx.AsyncBaseTransport, fault: FaultPoint) -> None:
        self._inner = inner
        self._fault = fault

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        what = request.url.path.rsplit("/", 1)[-1]
        self._fault(f"network:before:{what}")
        response = await self._inner.handle_async_request(request)
        self._fault(f"network:after:{what}")
        return response


@dataclass
class LastingPlatform(FakePlatform):
    """A fake platform whose registered keys outlive the process too."""

    fault: FaultPoint = no_fault

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._registered.exists():
            self.keys = json.loads(self._registered.read_text())

    @property
    def transport(self) -> httpx.AsyncBaseTransport:
        return Watched(super().transport, self.fault)

    @property
    def _registered(self) -> Path:
        return self.folder / "registered.json"

    def _register(self, body: dict[str, Any]) -> httpx.Response:
        response = super()._register(body)
        write_private(self._registered, json.dumps(self.keys).encode())
        return response


def common_faults(folder: Path, psbt_ids: tuple[str, ...]) -> list[str]:
    """Invariants of every story: one signature with the same bytes and key, and an intact audit chain, which
    tells of every question to a device that it was allowed and approved first.
    """
    platform = FakePlatform(folder)
    wrong = [
        "different bytes or keys were submitted"
        for psbt_id in psbt_ids
        if len({(entry["psbt"], entry["key"]) for entry in platform.signatures(psbt_id)}) > 1
    ]
    with read_journal(folder) as journal:
        entries = tuple(journal.audit())
    fault = first_fault(entries)
    return [*wrong, *unapproved(entries), *(() if fault is None else (fault[1],))]


TAKES_THE_YES_AWAY = frozenset(
    {"judged", "approval-lapsed", "interrupted", "restarted", "verify-failed", "declined", "altered"}
)


def unapproved(entries: Iterable[Entry]) -> Iterator[str]:
    """By the chain's own words: judged without a refusal, then approved, then asked, with one digest."""
    allowed: dict[str, bool] = {}
    approved: dict[str, str] = {}
    for entry in entries:
        subject, facts, kind = entry.note.subject, entry.note.facts, entry.note.kind
        if kind in TAKES_THE_YES_AWAY:
            approved.pop(subject, None)
        if kind == "judged":
            allowed[subject] = not facts["refusals"]
        elif kind == "approved":
            approved[subject] = facts["digest"] if allowed[subject] else "refused"
        elif kind in {"device-asked", "exported"} and approved.get(subject) != facts["digest"]:
            yield f"entry {entry.sequence}: {kind} without a yes to what was allowed"


def read_journal(folder: Path) -> Journal:
    return open_journal(folder / "state")


def count(path: Path) -> int:
    return len(path.read_text()) if path.exists() else 0


def add_one(path: Path) -> None:
    with path.open("a") as file:
        file.write(".")


@asynccontextmanager
async def lasting(folder: Path, platform: LastingPlatform, bridge: FakeBridge) -> AsyncIterator[Daemon]:
    """A daemon whose session and questions outlive it, and which the platform's fault point ends."""
    bridge.prompts = folder / "prompts"
    store = FileMemory(folder / "session")
    async with daemon_at(folder / "state", platform, bridge, store=store, fault=platform.fault) as daemon:
        yield daemon


async def sign_what_is_asked(daemon: Daemon, folder: Path, whole: Callable[[], bool] = lambda: True) -> None:
    """Approves whenever asked, once the review is whole, until the platform has the signature."""
    while state_of(daemon, PSBT_ID) is not State.SUBMITTED:
        await until(lambda: state_of(daemon, PSBT_ID) in (*ASKING, State.SUBMITTED) and whole())
        if state_of(daemon, PSBT_ID) in ASKING:
            add_one(folder / "yes")
            await approve(daemon, PSBT_ID)


# --- a payment: asked, signed, submitted --------------------------------------------------------------------


def prepare_payment(folder: Path) -> None:
    prepare(folder / "state")


async def live_payment(folder: Path, fault: FaultPoint) -> None:
    platform = LastingPlatform(folder, {PSBT_ID: snapshot_of(spend())}, fault=fault)
    async with lasting(folder, platform, FakeBridge()) as daemon:
        await sign_what_is_asked(daemon, folder)
        # Its status is asked for in a later round.
        rounds = daemon.follower.rounds
        await until(lambda: daemon.follower.rounds > rounds + 1)


def payment_faults(folder: Path, point: str) -> list[str]:
    wrong = [] if FakePlatform(folder).signatures(PSBT_ID) else ["the signature never arrived"]
    wrong += asked_too_often(folder, point)
    with read_journal(folder) as journal:
        if journal.record(PSBT_ID).state is not State.SUBMITTED:
            wrong.append(f"the proposal is {journal.record(PSBT_ID).state}")
    return [*wrong, *common_faults(folder, (PSBT_ID,))]


def asked_too_often(folder: Path, point: str) -> Iterator[str]:
    asked, yes = count(folder / "prompts"), count(folder / "yes")
    if asked > (2 if point in UNKEPT else 1):
        yield f"the device was asked {asked} times"
    # A recorded approval is not asked for again, unless the kill came while the device was asked.
    while_asked = UNKEPT | {"journal:before:Approved", "journal:after:DeviceFound", "device:before:sign"}
    if yes > 1 and point not in while_asked:
        yield f"the person was asked {yes} times"


# --- from nothing to a pinned vault, and pinned anew --------------------------------------------------------


class ProvingBridge(FakeBridge):
    async def sign_message(
        self, device_id: str, text: str, path: DerivationPath, *, on_progress: OnProgress | None = None
    ) -> bytes:
        assert self.prompts is not None
        add_one(self.prompts)
        return await super().sign_message(device_id, text, path, on_progress=on_progress)


def prepare_setup(_folder: Path) -> None:
    """Starts from an empty folder."""


async def live_setup(folder: Path, fault: FaultPoint) -> None:
    platform = LastingPlatform(folder, {PSBT_ID: snapshot_of(spend())}, fault=fault)
    platform.after = _drops_the_first_registration(folder)
    async with lasting(folder, platform, ProvingBridge()) as daemon:
        while not daemon.journal.own_keys():
            preview = await daemon.preview_registration()
            with suppress(PlatformUnreachable):
                await daemon.register(preview.device_id, preview.digest)
        await until(lambda: bool(daemon.journal.claims()))
        while not (_is_shown(daemon.journal) and _unpinned(daemon.journal)):
            await _next_pinning(daemon)
        await until(lambda: _states(daemon) == {PSBT_ID: State.WAITING_PERSON})


def _drops_the_first_registration(folder: Path) -> Callable[[httpx.Request], None]:
    """The platform registers the key and the answer is lost: the next try is refused,
    and the daemon finds the key and uses it.
    """

    def hook(request: httpx.Request) -> None:
        mark = folder / "dropped"
        if request.url.path.endswith("/register-key") and not mark.exists():
            mark.touch()
            raise httpx.ReadError("connection dropped")

    return hook


async def _next_pinning(daemon: Daemon) -> None:
    """Pinned without the device, unpinned, pinned so again, and then with the device."""
    code, pinned = VAULT.verification_code, daemon.journal.pin(VAULT_ID) is not None
    if pinned and not _unpinned(daemon.journal):
        await vaults.unpin(daemon, VAULT_ID, code)
    else:
        await vaults.pin(daemon, VAULT_ID, code, without_device_address=not pinned)


def _is_shown(journal: Journal) -> bool:
    pin = journal.pin(VAULT_ID)
    return pin is not None and journal.at_device(pin).address_shown


def _unpinned(journal: Journal) -> bool:
    return any(entry.note.kind == "unpinned" for entry in journal.audit())


def _states(daemon: Daemon) -> dict[str, State]:
    return {record.psbt_id: record.state for record in daemon.journal.records()}


def setup_faults(folder: Path, point: str) -> list[str]:
    wrong, proofs = [], count(folder / "prompts")
    if proofs > (2 if point in UNPROVEN else 1):
        wrong.append(f"the device was asked for {proofs} proofs")
    if len(FakePlatform(folder).told()) or len(LastingPlatform(folder).keys) != 1:
        wrong.append("the platform holds another number of keys than one, or was told something")
    with read_journal(folder) as journal:
        kinds = [entry.note.kind for entry in journal.audit()]
        told = {kind: kinds.count(kind) for kind in ("registered", "pinned", "unpinned", "enrolled")}
        if told != {"registered": 1, "pinned": 2, "unpinned": 1, "enrolled": 1}:
            wrong.append(f"the chain tells {told}")
        if len(journal.own_keys()) != 9 or journal.pin(VAULT_ID) is None:
            wrong.append("keys or the pin are lost")
    return [*wrong, *common_faults(folder, (PSBT_ID,))]


# --- everything that can go wrong with a proposal -----------------------------------------------------------

DECLINED, TROUBLED, TURNED_DOWN = "p-1", "p-2", "p-3"


def _payment_of(salt: int) -> Psbt:
    """Shares neither a coin nor a payment with another."""
    change = ChangeTo(sats(89_000 - salt), 1, 0)
    return build_psbt(VAULT, [fund(VAULT, 100_000, salt=salt)], [pay(10_000 + salt), change], 0)


TROUBLE = {
    psbt_id: snapshot_of(_payment_of(salt), psbt_id)
    for salt, psbt_id in enumerate((DECLINED, TROUBLED, TURNED_DOWN))
}
# More failures than the client retries by itself.
OUT_OF_ORDER = 8


def prepare_trouble(folder: Path) -> None:
    """The previous daemon ended while the device was asked."""
    prepare(folder / "state")
    with read_journal(folder) as journal:
        journal.poll(TROUBLE[TROUBLED])
        journal.decide(TROUBLED, events.Approved(reviewed(journal, TROUBLED).digest))
        journal.decide(TROUBLED, events.DeviceFound("trezor-1"))


async def live_trouble(folder: Path, fault: FaultPoint) -> None:
    """One is declined; one meets a locked device, a rejection at the device and a failing platform;
    the platform refuses one.
    """
    platform = LastingPlatform(folder, dict(TROUBLE), fault=fault)
    platform.before = _poor_platform(platform)
    async with lasting(folder, platform, FakeBridge(failures=[Locked(), RefusedByPerson()])) as daemon:

        def waiting() -> list[Record]:
            return [record for record in daemon.journal.records() if record.state in ASKING]

        while True:
            await until(lambda: bool(waiting()) or _all_settled(daemon.journal))
            if not waiting():
                break
            for record in waiting():
                if record.psbt_id == DECLINED:
                    await daemon.decline(DECLINED, "not ours")
                else:
                    await approve(daemon, record.psbt_id)
        platform.keys = [own_key_revoked()]
        daemon.keys.due.set()
        await until(lambda: daemon.journal.revocation() is not None)


def own_key_revoked() -> dict[str, Any]:
    own = ALICE.vault_key(NETWORK)
    return listed_key("key-1", str(own.xpub), str(own.fingerprint), str(own.origin.path), status="revoked")


def _all_settled(journal: Journal) -> bool:
    found = {record.psbt_id: record for record in journal.records()}
    declined = found[DECLINED].decline if DECLINED in found else None
    return (
        declined is not None
        and declined.delivered
        and {i: r.state for i, r in found.items()}
        == {DECLINED: State.DECLINED, TROUBLED: State.SUBMITTED, TURNED_DOWN: State.QUARANTINED}
    )


def _poor_platform(platform: FakePlatform) -> Callable[[httpx.Request], httpx.Response | None]:
    """The session's token expires, then the platform fails for a while, freezes a vault
    for a moment, and takes one key for revoked.
    """

    def hook(request: httpx.Request) -> httpx.Response | None:
        if not request.url.path.endswith("/sign-psbt"):
            return None
        about = json.loads(request.content)["psbt_id"]
        if about == TURNED_DOWN:
            return problem(403, "KEY_REVOKED")
        if about == TROUBLED:
            passing = count(platform.folder / "tries")
            add_one(platform.folder / "tries")
            if passing == 0:
                platform.token = "expired"
            elif passing < OUT_OF_ORDER:
                return problem(503, "BACKEND_UNAVAILABLE")
            elif passing == OUT_OF_ORDER:
                return problem(409, "VAULT_FROZEN")
        return None

    return hook


def trouble_faults(folder: Path, point: str) -> list[str]:
    wrong, platform = [], FakePlatform(folder)
    asked = count(folder / "prompts")
    if asked > (3 if point in UNKEPT else 2):
        wrong.append(f"the device was asked {asked} times")
    if not platform.signatures(TROUBLED) or platform.signatures(TURNED_DOWN):
        wrong.append("the signature never arrived, or one did that was turned down")
    if len({entry["key"] for entry in platform.told() if entry["psbt_id"] == DECLINED}) != 1:
        wrong.append("the decline did not arrive under one key")
    with read_journal(folder) as journal:
        if not _all_settled(journal):
            wrong.append(f"the proposals are {[record.state.value for record in journal.records()]}")
        if [entry.note.kind for entry in journal.audit()].count("key-revoked") > 1 or not journal.pins():
            wrong.append("the platform's word against the key was taken twice, or took the pin away")
    return [*wrong, *common_faults(folder, tuple(TROUBLE))]


# A daemon also reads the keys when it starts; a registration needs a later reading.
_TAKEN_UP = ("platform:{}:keys", "network:{}:keys")
_SUBMISSION = ("platform:{}:_sign_psbt", "network:{}:sign-psbt", "network:{}:refresh")
STORIES = (
    Story("payment", prepare_payment, live_payment, payment_faults),
    Story(
        "setup",
        prepare_setup,
        live_setup,
        setup_faults,
        frozenset(name.format(side) for name in _TAKEN_UP for side in ("before", "after")),
    ),
    Story(
        "trouble",
        prepare_trouble,
        live_trouble,
        trouble_faults,
        frozenset(name.format(side) for name in _SUBMISSION for side in ("before", "after"))
        | {"journal:before:Restarted", "journal:after:Restarted", "journal:before:DeviceReturned"},
    ),
)
