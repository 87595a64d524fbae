"""Following the platform: which workspaces, which vaults, which proposals await this signer, what became of the rest.

A long poll where the platform offers one; an ETag everywhere, so that an unchanged list costs an empty answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from signerd.account.backoff import Backoff
from signerd.account.platform import Platform
from signerd.account.wire import Workspace, workspaces_of
from signerd.core.effects import Effect
from signerd.core.text import said
from signerd.core.values import Snapshot
from signerd.errors import PlatformError, PlatformRefused, SignedOut
from signerd.journal import Journal

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]

# A platform without long poll answers at once: it is not asked more often than this.
SHORTEST_ROUND_SECONDS = 2.0
# New workspaces and changed vault records are noticed within this time.
LEARN_EVERY_SECONDS = 60.0
# While something is followed one by one, which no long poll tells of, a round lasts no longer.
FOLLOWING_ROUND_SECONDS = 20
# Proposals followed one by one in a round, beside the list: a thousand take their turns.
FOLLOWED_A_ROUND = 20


class Sink(Protocol):
    """What takes the effects of what was learnt."""

    def perform(self, effects: Iterable[Effect]) -> None: ...


@dataclass
class PlatformState:
    """What the status shows: the last word from the platform, and since when it is missing."""

    reachable: bool = False
    user_id: int | None = None
    last_heard: float | None = None
    trouble: str | None = None
    workspaces: tuple[Workspace, ...] = ()
    rounds: int = 0


@dataclass
class Follower:
    """``run`` ends only by cancellation or by an error that must stop the daemon."""

    journal: Journal
    platform: Platform
    sink: Sink
    signed_in: asyncio.Event
    jitter: Callable[[], float]
    clock: Clock
    only: frozenset[int] = frozenset()
    long_poll_seconds: int = 50
    sleep: Sleep = asyncio.sleep
    state: PlatformState = field(default_factory=PlatformState)
    _turn: str = ""

    async def run(self) -> None:
        """Keep the list of workspaces, and follow each in a task of its own."""
        tasks: dict[Workspace, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self.patiently(self._learn_workspaces)
                for gone in set(tasks) - set(self.state.workspaces):
                    tasks.pop(gone).cancel()
                for workspace in self.state.workspaces:
                    if workspace not in tasks:
                        tasks[workspace] = group.create_task(self._follow(workspace))
                await self.sleep(LEARN_EVERY_SECONDS)

    async def patiently(self, call: Callable[[], Awaitable[None]]) -> None:
        """Until it succeeds: wait for a sign-in, and longer each time for a platform that does not answer."""
        pause = Backoff(self.jitter)
        while True:
            await self.signed_in.wait()
            try:
                await call()
            except SignedOut:
                self._trouble("signed out")
                if not self.signed_in.is_set():
                    continue
            except PlatformError as error:
                self._trouble(said(error))
            else:
                self.state.reachable, self.state.trouble = True, None
                self.state.last_heard = self.clock()
                return
            await self.sleep(pause.next())

    def _trouble(self, sentence: str) -> None:
        self.state.reachable, self.state.trouble = False, sentence

    async def _learn_workspaces(self) -> None:
        user = await self.platform.user()
        network = self.journal.network.api_name
        self.state.user_id = user.uuid
        self.state.workspaces = tuple(
            workspace
            for workspace in workspaces_of(user)
            if workspace.network == network and (not self.only or workspace.id in self.only)
        )

    # --- one workspace -----------------------------------------------------------------------------------------------

    async def _follow(self, workspace: Workspace) -> None:
        etag: str | None = None
        listed: set[str] = set()
        learnt: float | None = None
        following = False

        async def one_round() -> None:
            nonlocal etag, listed, learnt, following
            now = self.clock()
            wait = (
                min(self.long_poll_seconds, FOLLOWING_ROUND_SECONDS) if following else self.long_poll_seconds
            )
            # Also what would be due before the round is over.
            if learnt is None or now - learnt + wait >= LEARN_EVERY_SECONDS:
                await self.learn_vaults(workspace)
                learnt = now
            snapshots, fresh = await self.platform.awaiting(workspace, etag, wait)
            if snapshots is not None:
                await self._take(workspace, snapshots)
                listed = {snapshot.psbt_id for snapshot in snapshots}
            # Only what was taken is not asked for again.
            etag = fresh
            following = await self._follow_known(workspace, listed)
            self.state.rounds += 1

        while True:
            began = self.clock()
            await self.patiently(one_round)
            rest = SHORTEST_ROUND_SECONDS - (self.clock() - began)
            if rest > 0:
                await self.sleep(rest)

    async def learn_now(self) -> None:
        """Ask for the vaults of every workspace. Raises leaves of PlatformError, SignedOut."""
        for workspace in self.state.workspaces:
            await self.learn_vaults(workspace)

    async def learn_vaults(self, workspace: Workspace) -> None:
        """Take the platform's word about the vaults; what waits is judged anew where it changed."""
        learnt = [self.journal.learn(claim) for claim in await self.platform.vaults(workspace)]
        for heard in learnt:
            self.sink.perform(heard.effects)
        if any(heard.news for heard in learnt):
            self.sink.perform(self.journal.reconsider())

    async def _take(self, workspace: Workspace, snapshots: tuple[Snapshot, ...]) -> None:
        known = {claim.vault_id for claim in self.journal.claims()}
        if any(snapshot.vault_id not in known for snapshot in snapshots):
            await self.learn_vaults(workspace)
        for snapshot in snapshots:
            self.sink.perform(self.journal.poll(snapshot).effects)

    async def _follow_known(self, workspace: Workspace, listed: set[str]) -> bool:
        """What became of those that no longer await us, a few at a time, each in its turn; whether there are any."""
        open_ones = [
            record.psbt_id
            for record in self.journal.unsettled()
            if record.snapshot.workspace_id == workspace.id and record.psbt_id not in listed
        ]
        after = [psbt_id for psbt_id in open_ones if psbt_id > self._turn]
        before = [psbt_id for psbt_id in open_ones if psbt_id <= self._turn]
        for psbt_id in islice((*sorted(after), *sorted(before)), FOLLOWED_A_ROUND):
            self._turn = psbt_id
            try:
                snapshot = await self.platform.proposal(psbt_id, workspace)
            except PlatformRefused:
                continue  # It is gone there, or no longer ours to see: what is known of it stays.
            self.sink.perform(self.journal.poll(snapshot).effects)
        return bool(open_ones)
