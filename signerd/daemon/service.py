"""The use cases of the daemon, for the page, the command line and apps.

Called from one event loop. Every method may raise a leaf of SignerdError; nothing has changed then, unless
the leaf says otherwise. ``register`` and ``pin`` return when the person has confirmed on the device; progress
is in ``feed`` under "registration" or the vault's id. ``approve`` returns as soon as the decision is
recorded; progress is under the proposal's id.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from custody._version import __version__
from custody.common.text import plain, said
from custody.schemas.keys import KeyDevice
from firmware_bridge import Bridge, Device, DeviceState
from multisig import multisig_account_path, profile_account_path
from signerd.account.config import Config
from signerd.account.follower import Follower
from signerd.account.platform import PlatformClient
from signerd.account.registration import KeyWatch, Offer, ask_challenge, registered
from signerd.account.session import Account
from signerd.account.vaults import seen_vaults
from signerd.apps.paired import PairedApps
from signerd.backup.schedule import last_backup, reminders
from signerd.callers import TERMINAL, LoopbackCaller
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import REGISTRATION, JudgeAgain
from signerd.core.following import ENDED
from signerd.core.keys import VaultAccounts
from signerd.core.states import State
from signerd.core.text import moment_of
from signerd.core.values import OwnKey, Record
from signerd.daemon.devices import Devices, name_of, teller, to_confirm
from signerd.daemon.imported import ImportedPsbts
from signerd.daemon.proposal_views import for_an_app, imported_proposal_line, proposal_line, proposal_view
from signerd.daemon.reports import notes_of, settings_view, verified
from signerd.daemon.runner import Runner
from signerd.daemon.unlocking import Prompts, Unlocking, asked_by
from signerd.daemon.views import account_keys, device_view, preview_view
from signerd.endpoint import PageAddress
from signerd.errors import (
    DeviceError,
    JournalCorrupted,
    PlatformError,
    SignedOut,
    SignerdError,
    UnknownProposal,
)
from signerd.feed import Feed, SingleFlight, Troubles, in_turn
from signerd.journal import Journal
from signerd.journal.storage import check_whole
from signerd.runtime import DaemonDependencies
from signerd.shapes import (
    AccountKeys,
    AuditReport,
    DeviceView,
    ProposalLine,
    ProposalView,
    Registered,
    RegistrationPreview,
    SettingsView,
    SignedIn,
    Status,
)
from signerd.standing import is_left_open

T = TypeVar("T")

# The subject of sign-ins in the chain and the feed.
ACCOUNT = "account"
# The whole journal is checked for damage once a day.
CHECK_SECONDS = 86_400.0


class Daemon:
    """The wired parts. ``running`` runs their tasks; the methods are called from the same event loop."""

    def __init__(
        self,
        state: Path,
        config: Config,
        journal: Journal,
        account: Account,
        bridge: Bridge,
        outside: DaemonDependencies,
        config_file: Path | None = None,
    ) -> None:
        """``config_file``: the file of ``config``, if any."""
        self.state, self.config, self.config_file = state, config, config_file
        self.journal, self.account, self.outside = journal, account, outside
        self.platform = PlatformClient(account.client, fault=outside.fault)
        self.bridge_devices = Devices(bridge, outside.fault)
        self.feed = feed = Feed(int(outside.now() * 1000))
        self.troubles = troubles = Troubles(feed)
        self.page_address, keys_due, signed_in = PageAddress(), asyncio.Event(), account.signed_in
        self.runner = runner = Runner(
            journal, self.bridge_devices, self.platform, feed, troubles, signed_in, keys_due, outside
        )
        self.follower = Follower(
            journal, self.platform, runner, signed_in, troubles, outside, config.platform.long_poll_seconds
        )
        self.follower.only = frozenset(config.platform.workspaces)
        runner.check_before_sending = self.follower.look
        self.keys = KeyWatch(journal, self.platform, runner, signed_in, keys_due, troubles, outside)
        self.imported = ImportedPsbts(journal, runner, outside, config.labels)
        self.unlocking, self.prompts = Unlocking(self.bridge_devices, feed, outside), Prompts(outside.clock)
        self.apps = PairedApps(journal, feed, outside)
        self.journal.stored = self._stored
        # Of ``run``: it ends early only with an error that must stop the daemon.
        self.task: asyncio.Task[None]
        # When the platform was last asked for the vaults, by the clock.
        self.looked: float | None = None
        # Verifying a long chain takes seconds, and apps may ask repeatedly.
        self._chain = SingleFlight(partial(verified, self.journal))

    def _stored(self, before: Record | None, after: Record) -> None:
        self.imported.reviews.settle(after)
        self.runner.tell(before, after)

    # --- running --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled, or until something happens that must stop the daemon."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._check_journal())
            tasks.create_task(self.runner.run())
            tasks.create_task(self.follower.run())
            tasks.create_task(self.keys.run())
            tasks.create_task(self.account.keep())
            tasks.create_task(self.imported.run())

    async def _check_journal(self) -> None:
        """Check the whole journal each day, and first where the start has not. Before that, nothing is asked
        of a device.

        Raises JournalCorrupted.
        """
        is_checked, stopped = self.journal.is_checked, threading.Event()
        try:
            while True:
                fault = (
                    None if is_checked else await asyncio.to_thread(check_whole, self.state, stopped.is_set)
                )
                if fault is not None:
                    raise JournalCorrupted(f"the journal is damaged ({fault}). The next start sets it aside")
                self.runner.checked.set()
                is_checked = False
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            stopped.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Run the tasks during the body. Raises the error that ended them, not an exception group."""
        self.task = task = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            await self.unlocking.close()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await _unwrapped(task)

    # --- looking --------------------------------------------------------------------------------------------

    async def status(self) -> Status:
        entries, head = self.journal.head()
        keys = self.journal.own_keys()
        present: tuple[Device, ...] = ()
        unlisted: tuple[str, ...] = ()
        try:
            present = await self.bridge_devices.all()
        except DeviceError as error:
            unlisted = (said(error),)
        pinned, now = bool(self.journal.pins()), self.journal.now()
        made = last_backup(self.state)
        vaults = await in_turn(lambda seen: seen, seen_vaults(self.journal))
        notes = (
            *notes_of(self.config, self.account, self.follower, vaults),
            *reminders(self.state, self.config.backup, now, pinned=pinned),
        )
        return Status(
            version=__version__,
            network=str(self.journal.network),
            state_folder=str(self.state),
            platform_url=self.config.platform.url,
            email=self.account.email,
            signed_in=self.account.signed_in.is_set(),
            platform_reachable=self.follower.reachable,
            secrets=self.account.mode,
            fingerprint=str(keys[-1].key.origin.fingerprint) if keys else None,
            devices_ready=sum(device.state in {DeviceState.READY, DeviceState.BUSY} for device in present),
            vaults_pinned=len(self.journal.pins()),
            waiting_for_you=len(self.journal.ids([State.WAITING_PERSON, State.INTERRUPTED])),
            journal_entries=entries,
            journal_head=head.hex(),
            backup_made_at=None if made is None else moment_of(made.at),
            backup_fingerprint=None if made is None else made.fingerprint,
            position=self.feed.last,
            page_url=self.page_address.url,
            notes=tuple(dict.fromkeys((*notes, *unlisted, *self.page_address.notes))),
        )

    async def devices(self) -> tuple[DeviceView, ...]:
        return tuple(self._device_view(device) for device in await self.bridge_devices.all())

    def _device_view(self, device: Device) -> DeviceView:
        view = device_view(device)
        former = {former.own.key.fingerprint for former in self.journal.former_keys()}
        registered = {own.key.fingerprint for own in self.journal.own_keys()}
        if device.fingerprint in registered and self.journal.revocation() is not None:
            word = "The platform says that its key is revoked"
        elif device.fingerprint in former - registered:
            word = "Another device has taken its place"
        elif registered and device.fingerprint is not None and device.fingerprint not in registered:
            word = "It is not the device that you registered"
        else:
            return view
        sentence = f"{word}: nothing is signed with it."
        return view.model_copy(update={"detail": " ".join(filter(None, (view.detail, sentence)))})

    async def identify_device(self, device_id: str, by: LoopbackCaller) -> None:
        """Returns when the person has seen it. Raises leaves of DeviceError, TooManyPrompts."""
        device = await self.bridge_devices.chosen(device_id)
        with self.prompts.turn(by):
            sentence = f"shows itself{asked_by(by)}. Press its button to end that."
            self.feed.add(device_id, "progress", f"{name_of(device)} {sentence}")
            await self.bridge_devices.identify(device_id, teller(self.feed, device_id))

    async def device_accounts(self, device_id: str, account: int, by: LoopbackCaller) -> AccountKeys:
        """The device's keys of this standard account. Callers cannot choose paths (L5). Raises as
        ``identify_device``.
        """
        device, network = await self.bridge_devices.chosen(device_id), self.journal.network
        paths = (multisig_account_path(network, account), profile_account_path(network, account))
        with self.prompts.turn(by):
            sentence = f"tells its keys of account {account}{asked_by(by)}."
            self.feed.add(device_id, "progress", f"{name_of(device)} {sentence}")
            vault_key, profile_key = await self.bridge_devices.keys(device_id, paths)
        keys = OwnKey(vault_key, "vault", account), OwnKey(profile_key, "profile", account)
        return account_keys(network, keys)

    async def proposals(self, *, ended: bool, by: LoopbackCaller = TERMINAL) -> tuple[ProposalLine, ...]:
        """In the order of arrival; ended ones only with ``ended``, but always what others may still sign."""
        states = [state for state in State if ended or state not in ENDED - {State.DECLINED}]
        lines = await in_turn(lambda psbt_id: self._line_of(psbt_id, by), self.journal.ids(states))
        return tuple(
            line
            for line in lines
            if line is not None and (ended or line.state != State.DECLINED or is_left_open(line))
        )

    def _line_of(self, psbt_id: str, by: LoopbackCaller = TERMINAL) -> ProposalLine | None:
        """None where it was forgotten since it was listed."""
        try:
            return self.line(self.journal.record(psbt_id), by)
        except UnknownProposal:
            return None

    async def proposal(self, psbt_id: str, by: LoopbackCaller = TERMINAL) -> ProposalView:
        """As ``by`` may see it: without other apps' PSBTs (L13) and the address book, for an app. Raises
        UnknownProposal.
        """
        record = self.journal.record(psbt_id)
        review = self.imported.reviews.of(record)
        # A connected device with a registered key, in any state.
        ours, device = {own.key.fingerprint for own in self.journal.own_keys()}, None
        with contextlib.suppress(DeviceError):
            device = next((one for one in await self.bridge_devices.all() if one.fingerprint in ours), None)
        shown = proposal_view(record, review, self.imported.names(review, by), device)
        return shown if by.app_id is None else for_an_app(shown, review, partial(self.imported.hides, by))

    def title(self, psbt_id: str) -> str | None:
        """The title of a proposal, for notifications; None for other subjects."""
        line = self._line_of(psbt_id)
        return None if line is None else line.title

    async def verify_audit(self) -> AuditReport:
        return await self._chain.get()

    def line(self, record: Record, by: LoopbackCaller = TERMINAL) -> ProposalLine:
        """As ``by`` may see it: without the address book, for an app."""
        if record.snapshot.imported is not None:
            return imported_proposal_line(record, self.journal.pin_of(record.snapshot), self.journal.network)
        review = self.imported.reviews.of(record)
        return proposal_line(record, review, self.imported.names(review, by))

    # --- deciding -------------------------------------------------------------------------------------------

    async def approve(
        self,
        psbt_id: str,
        digest: str,
        acknowledged: frozenset[str] = frozenset(),
        by: LoopbackCaller = TERMINAL,
    ) -> ProposalLine:
        """Record the approval of what ``digest`` covers, by the person or an app with that right.

        Raises:
            UnknownProposal, IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement: nothing
            changed.
            NotAllowed: an app imported it, and only the person decides about it.
        """
        self.imported.require_decider(psbt_id, by)
        step = self.runner.decide(psbt_id, events.Approved(digest, acknowledged, by.audit_name))
        return self.line(step.record, by)

    async def decline(self, psbt_id: str, reason: str = "", by: LoopbackCaller = TERMINAL) -> ProposalLine:
        """Record that it is declined; the platform is told.

        Raises:
            UnknownProposal, IllegalEvent, NotAllowed: nothing changed.
        """
        self.imported.require_decider(psbt_id, by)
        return self.line(
            self.runner.decide(psbt_id, events.PersonDeclined(plain(reason), by.audit_name)).record, by
        )

    # --- signing in -----------------------------------------------------------------------------------------

    async def sign_in(self, email: str, password: str) -> SignedIn:
        """Raises as ``Account.login``."""
        if await self.account.login(email, password):
            return self._signed_in_as(email)
        return SignedIn(email=email, code_needed=True, secrets=self.account.mode)

    async def confirm_sign_in(self, code: str) -> SignedIn:
        """Raises as ``Account.confirm``."""
        await self.account.confirm(code)
        return self._signed_in_as(self.account.email or "")

    def _signed_in_as(self, email: str) -> SignedIn:
        self.journal.note(Note("signed-in", email))
        self.feed.add(ACCOUNT, "info", f"Signed in as {email}.")
        self.keys.due.set()
        return SignedIn(email=email, code_needed=False, secrets=self.account.mode)

    async def sign_out(self) -> None:
        await self.account.logout()
        self.journal.note(Note("signed-out", ACCOUNT))
        self.feed.add(ACCOUNT, "info", "signerd is no longer signed in to the platform.")

    # --- keys and vaults ------------------------------------------------------------------------------------

    async def preview_registration(self, device: str | None = None) -> RegistrationPreview:
        """Read the keys to register; nothing is sent. Raises leaves of DeviceError."""
        current, offer = await self._offer(device)
        return preview_view(offer, current, self.keys.accounts_of(offer.base.fingerprint).known)

    async def register(self, device_id: str, digest: str, *, replace: bool = False) -> Registered:
        """Register exactly what the preview with this digest showed; the device signs a proof.

        Raises:
            SignedOut, RegistrationStale; leaves of DeviceError and PlatformError.
        """
        user_id = await self.user_id()
        device, offer = await self._offer(device_id)
        challenge = await ask_challenge(offer, digest, user_id, self.platform)
        self.feed.add(REGISTRATION, "progress", to_confirm(device, challenge))
        progress = teller(self.feed, REGISTRATION)
        proof = await self.bridge_devices.sign_text(device_id, challenge, offer.proof_path, progress)
        # Those that the platform's API does not accept are left out.
        said = {"maker": str(device.family), "model": device.model, "firmware": device.firmware}
        known = {}
        for name, value in said.items():
            with contextlib.suppress(ValidationError):
                known[name] = getattr(KeyDevice.model_validate({name: value}), name)
        return await self.register_proven(
            offer, challenge, proof, replace=replace, device=KeyDevice.model_validate(known)
        )

    async def register_proven(
        self, offer: Offer, challenge: str, proof: bytes, *, replace: bool, device: KeyDevice
    ) -> Registered:
        """By the device's signature of the challenge. Raises what the platform raises."""
        label, own, fingerprint = self.config.label, offer.own_keys(), str(offer.base.fingerprint)
        key = await registered(
            self.platform, offer, challenge, proof, label=label, replace=replace, device=device
        )
        facts = {
            "fingerprint": fingerprint,
            "keys": [str(one.key) for one in own],
            "device": device.model_dump(mode="json", exclude_none=True),
        }
        effects = self.journal.add_own_keys(own, key.id, Note("registered", key.id, facts))
        self.runner.announce((*effects, JudgeAgain()))
        self.keys.due.set()
        self.runner.look.set()
        network = str(self.journal.network)
        return Registered(key_id=key.id, network=network, fingerprint=fingerprint, label=label)

    async def user_id(self) -> int:
        """Raises SignedOut; leaves of PlatformError."""
        if not self.account.signed_in.is_set():
            raise SignedOut("you are not signed in to the platform")
        user_id, _workspaces = await self.platform.user()
        return user_id

    async def settings(self) -> SettingsView:
        return settings_view(self.state, self.config, self.account, self.journal)

    async def _offer(self, device_id: str | None) -> tuple[Device, Offer]:
        """The keys to register, of as many accounts as the platform's current list asks for, if it is
        reachable.
        """
        device, network = await self.bridge_devices.chosen(device_id), self.journal.network
        if self.account.signed_in.is_set():
            with contextlib.suppress(PlatformError, SignedOut):
                await self.keys.read_now()
        known = VaultAccounts() if device.fingerprint is None else self.keys.accounts_of(device.fingerprint)
        paths = [multisig_account_path(network, account) for account in range(known.wanted)]
        *vault_keys, profile = await self.bridge_devices.keys(
            device.id, [*paths, profile_account_path(network)]
        )
        return device, Offer(network, tuple(vault_keys), profile)


async def _unwrapped(task: asyncio.Task[None]) -> None:
    """Wait for the task, and raise our error instead of an exception group."""
    try:
        await task
    except BaseExceptionGroup as group:
        error: BaseException | None = group.subgroup(SignerdError)
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is None:
            raise
        raise error from group
