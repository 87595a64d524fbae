"""What a person or a program can ask of the daemon: the loopback API and the demo call these, and nothing deeper."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from custody.schemas.keys import Key
from firmware_bridge import Device, Progress
from multisig import DerivationPath, OriginKey
from signerd.account.config import Config
from signerd.account.follower import Follower, PlatformState
from signerd.account.platform import Platform
from signerd.account.registration import Offer, read_offer, register
from signerd.account.session import Account
from signerd.account.vaults import SeenVault, pin, seen_vault, seen_vaults
from signerd.core import events
from signerd.core.audit import Note, first_fault
from signerd.core.review import Review
from signerd.core.states import State
from signerd.core.text import plain
from signerd.core.values import Record
from signerd.devices import Devices
from signerd.errors import SignedOut
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.runner import Runner

REGISTRATION = "registration"
# As the platform bounds a reason.
MAX_REASON = 1_000


@dataclass(frozen=True)
class Status:
    network: str
    platform_url: str
    account: str | None
    secrets: str
    platform: PlatformState
    devices: tuple[Device, ...]
    counts: dict[str, int]
    audit_length: int
    audit_head: str
    keys: int
    pins: int


@dataclass(frozen=True)
class Shown:
    """A proposal as it stands, and what an approval would be bound to."""

    record: Record
    review: Review


class Daemon:
    """The parts, wired. ``run`` as a task; every other method may be called meanwhile from the same loop."""

    def __init__(
        self,
        config: Config,
        journal: Journal,
        account: Account,
        platform: Platform,
        devices: Devices,
        feed: Feed,
        runner: Runner,
        follower: Follower,
    ) -> None:
        self.config = config
        self.journal = journal
        self.account = account
        self.feed = feed
        self._platform = platform
        self._devices = devices
        self._runner = runner
        self._follower = follower

    async def run(self) -> None:
        """Until cancelled, or until something happens that must stop the daemon."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._runner.run())
            tasks.create_task(self._follower.run())
            tasks.create_task(self.account.keep())

    # --- looking -----------------------------------------------------------------------------------------------------

    async def status(self) -> Status:
        counts: dict[str, int] = {}
        for record in self.journal.records():
            counts[record.state.value] = counts.get(record.state.value, 0) + 1
        length, head = self.journal.head()
        return Status(
            network=str(self.journal.network),
            platform_url=self.config.platform.url,
            account=self.account.email,
            secrets=self.account.mode,
            platform=self._follower.state,
            devices=await self._devices.all(),
            counts=counts,
            audit_length=length,
            audit_head=head.hex(),
            keys=len(self.journal.own_keys()),
            pins=len(self.journal.pins()),
        )

    async def devices(self) -> tuple[Device, ...]:
        return await self._devices.all()

    def proposals(self) -> tuple[Record, ...]:
        return self.journal.records()

    def show(self, psbt_id: str) -> Shown:
        """Raises UnknownProposal."""
        return Shown(self.journal.record(psbt_id), self.journal.review(psbt_id))

    def vaults(self) -> tuple[SeenVault, ...]:
        return seen_vaults(self.journal)

    def verify_audit(self) -> tuple[int, str | None]:
        """How many entries the chain has, and what is wrong with it, if anything is."""
        fault = first_fault(self.journal.audit())
        return self.journal.head()[0], None if fault is None else fault[1]

    # --- deciding ----------------------------------------------------------------------------------------------------

    def approve(self, psbt_id: str, digest: str, acknowledged: frozenset[str] = frozenset()) -> Record:
        """The person's yes to what ``digest`` covers.

        Raises:
            UnknownProposal, IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement.
        """
        return self._runner.decide(psbt_id, events.Approved(digest, acknowledged)).record

    def reject(self, psbt_id: str, reason: str = "") -> Record:
        """The person's no; the platform is told. Raises UnknownProposal, IllegalEvent."""
        return self._runner.decide(psbt_id, events.Refused(plain(reason)[:MAX_REASON])).record

    # --- signing in --------------------------------------------------------------------------------------------------

    async def login(self, email: str, password: str) -> bool:
        """False where a one-time code was sent: go on with ``confirm``. Raises as ``Account.login``."""
        done = await self.account.login(email, password)
        if done:
            self.journal.note(Note("signed-in", email))
        return done

    async def confirm(self, otp: str) -> None:
        await self.account.confirm(otp)
        self.journal.note(Note("signed-in", self.account.email or ""))

    async def logout(self) -> None:
        await self.account.logout()
        self.journal.note(Note("signed-out", "account"))

    # --- keys and vaults ---------------------------------------------------------------------------------------------

    async def offer(self, device_id: str | None = None) -> tuple[Device, Offer]:
        """Read the keys that would be registered; nothing is sent anywhere. Raises leaves of DeviceError."""
        device = await self._devices.chosen(device_id)

        async def read(paths: list[DerivationPath]) -> tuple[OriginKey, ...]:
            return await self._devices.keys(device.id, paths)

        return device, await read_offer(self.journal.network, lambda paths: read(list(paths)))

    async def register(
        self, device_id: str, digest: str, *, label: str | None = None, replace: bool = False
    ) -> Key:
        """Register exactly the offer with this digest; the device signs a proof.

        Raises:
            SignedOut, RegistrationStale; leaves of DeviceError and PlatformError.
        """
        if not self.account.signed_in.is_set():
            raise SignedOut("nobody is signed in to the platform")
        _device, offer = await self.offer(device_id)
        user = await self._platform.user()

        async def sign_text(text: str, path: DerivationPath) -> bytes:
            self.feed.add(REGISTRATION, "progress", "Look at your device: it shows the platform's challenge.")
            return await self._devices.sign_text(device_id, text, path, self._teller(REGISTRATION))

        key = await register(
            offer,
            digest,
            label=label or self.config.label,
            replace=replace,
            user_id=user.uuid,
            platform=self._platform,
            sign_text=sign_text,
            journal=self.journal,
        )
        self._runner.perform(self.journal.reconsider())
        return key

    async def refresh_vaults(self) -> tuple[SeenVault, ...]:
        """Ask the platform for its vaults now. Raises leaves of PlatformError, SignedOut."""
        for workspace in self._follower.state.workspaces:
            await self._follower.learn_vaults(workspace)
        return self.vaults()

    async def pin(self, vault_id: str, code: str) -> SeenVault:
        """Pin a vault whose code the person compared, and make the device know it where its maker wants that.

        Raises:
            UnknownVault, NotOurVault, VaultDiffers, WrongCode, AccountReused: nothing was changed. Leaves of
            DeviceError: the vault is pinned; pin it again to go on with the device.
        """
        pinned = pin(self.journal, vault_id, code)
        if not self.journal.is_enrolled(vault_id):
            device = await self._devices.of(pinned.own_key.origin.fingerprint)
            await self._devices.enrol(device.id, pinned.vault, pinned.name, self._teller(vault_id))
            self.journal.set_enrolled(vault_id, Note("enrolled", vault_id, {"device": device.id}))
        self._runner.perform(self.journal.reconsider())
        return seen_vault(self.journal, vault_id)

    def _teller(self, subject: str) -> "_Teller":
        return _Teller(self.feed, subject)


@dataclass(frozen=True)
class _Teller:
    feed: Feed
    subject: str

    def __call__(self, progress: Progress) -> None:
        self.feed.add(self.subject, "progress", plain(progress.text))


@contextlib.asynccontextmanager
async def running(daemon: Daemon) -> AsyncIterator[Daemon]:
    """The daemon's tasks beside the body; they end with it."""
    task = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


BUSY_STATES = frozenset(
    {State.WAITING_DEVICE, State.SIGNING, State.VERIFYING, State.SIGNED, State.SUBMITTING}
)
