"""Following the platform: workspaces, vaults, proposals that await this signer, and the outcome of earlier
ones.

Uses a long poll where the platform supports it, and ETags: an unchanged list costs an empty answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from custody.common.pace import Backoff
from custody.common.text import said
from signerd.account.others import PLATFORM, OthersProposals
from signerd.account.platform import PlatformClient, Sink
from signerd.account.wire import UNFORESEEN, Listed, PlatformWorkspace, UnreadableEntry
from signerd.core.events import Level, News, Notify
from signerd.core.following import LEFT
from signerd.core.values import Snapshot
from signerd.errors import (
    PlatformAnswersWrongly,
    PlatformError,
    PlatformFloods,
    PlatformRefused,
    SignedOut,
    SignerdError,
)
from signerd.feed import SingleFlight, Troubles, in_turn, unforeseen
from signerd.journal import Journal
from signerd.runtime import DaemonDependencies

# The least time between two rounds, for a platform without long poll, which answers at once.
SHORTEST_ROUND_SECONDS = 2.0
# New workspaces and changed vault records are noticed within this time.
LEARN_EVERY_SECONDS = 60.0
# The longest round while proposals are polled one by one, of which a long poll does not tell.
FOLLOWING_ROUND_SECONDS = 20
# Entries that could not be read are tried again with a growing pause, of at most this.
LEFT_OUT_SECONDS = 600.0
# The deadline for reading what came after a signature; a longer list is continued at the next attempt.
LOOK_SECONDS = 120.0
WAITS = "Your signature is kept and not sent yet."
WORKSPACES = "workspaces"
LISTED, KNOWN, VAULTS = "proposals of workspace", "known proposals of workspace", "vaults of workspace"
TOKENS = "tokens of workspace"
OTHERS = "what others signed in workspace"
# Proposals polled one by one in a round, in addition to the list; with more, they take turns.
FOLLOWED_A_ROUND = 20
# Inputs and outputs that are judged in a round: seconds of work, or a thousand usual payments.
MOST_PARTS_A_ROUND = 10_000


_log = logging.getLogger(__name__)


@dataclass
class Follower:
    """``run`` ends only by cancellation or by an error that must stop the daemon. ``reachable``: whether the
    platform answered last; else ``trouble`` says why.
    """

    journal: Journal
    platform: PlatformClient
    sink: Sink
    signed_in: asyncio.Event
    troubles: Troubles
    outside: DaemonDependencies
    long_poll_seconds: int = 50
    only: frozenset[int] = frozenset()
    reachable: bool = False
    trouble: str | None = None
    workspaces: tuple[PlatformWorkspace, ...] = ()
    rounds: int = 0
    _alarmed: set[str] = field(default_factory=set)
    # By workspace.
    _reading: dict[int, SingleFlight[bool]] = field(default_factory=dict)
    # By proposal, why its signature is not submitted yet, as it was announced last.
    _held: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.others = OthersProposals(self.journal, self.platform, self._alarm, self.sink)

    async def run(self) -> None:
        """Keep the list of workspaces, and follow each in a task of its own."""
        tasks: dict[PlatformWorkspace, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self.patiently(self._read_workspaces)
                for gone in set(tasks) - set(self.workspaces):
                    tasks.pop(gone).cancel()
                for workspace in self.workspaces:
                    if workspace not in tasks:
                        tasks[workspace] = group.create_task(self._follow(workspace))
                await self.outside.sleep(LEARN_EVERY_SECONDS)

    async def patiently(self, call: Callable[[], Awaitable[None]]) -> None:
        """Repeat `call` until it succeeds. Waits for a sign-in, and with back-off for a platform that does
        not answer.
        """
        pause = Backoff(self.outside.jitter)
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
            except SignerdError:
                raise
            except Exception:  # noqa: BLE001 - an answer that breaks our code must not end following
                _log.exception("following the platform failed in an unforeseen way")
                self._trouble(unforeseen("Following the platform"))
            else:
                self.reachable, self.trouble = True, None
                return
            await self.outside.sleep(pause.next())

    def _trouble(self, sentence: str) -> None:
        self.reachable, self.trouble = False, sentence

    async def _read_workspaces(self) -> None:
        _user_id, listed = await self.platform.user()
        self.troubles.report(WORKSPACES, _left_out("workspace", listed.unreadable))
        network = self.journal.network.api_name
        self.workspaces = tuple(
            workspace
            for workspace in listed.items
            if workspace.network == network and (not self.only or workspace.id in self.only)
        )

    # --- one workspace --------------------------------------------------------------------------------------

    async def _follow(self, workspace: PlatformWorkspace) -> None:
        following = _Following(workspace, Backoff(self.outside.jitter, longest=LEFT_OUT_SECONDS))
        try:
            while True:
                began = self.outside.clock()
                await self.patiently(partial(self._round, following))
                rest = SHORTEST_ROUND_SECONDS - (self.outside.clock() - began)
                if rest > 0:
                    await self.outside.sleep(rest)
        finally:
            for group in (LISTED, KNOWN, VAULTS, TOKENS, OTHERS):
                self.troubles.report(f"{group} {workspace.id}", {})

    async def _round(self, following: "_Following") -> None:
        workspace, now = following.workspace, self.outside.clock()
        longest = FOLLOWING_ROUND_SECONDS if following.one_by_one else self.long_poll_seconds
        wait = min(self.long_poll_seconds, longest)
        # Also if it would become due during this round.
        learns = following.learnt is None or now - following.learnt + wait >= LEARN_EVERY_SECONDS
        if learns:
            await self.read_vaults(workspace)
            following.learnt = now
        listed, etag = await self.platform.awaiting(workspace, following.tag(now), wait)
        # Before the person is asked about a new proposal.
        if learns or listed is not None or following.others_have_more:
            await self._read_others(following, listed)
        if listed is not None:
            following.listed = await self._take(following, listed)
        # Kept only now: what failed above is asked for again.
        following.etag = None if following.more_listed else etag
        following.one_by_one = await self._follow_known(following) or following.others_have_more
        self.rounds += 1

    async def look(self, psbt_id: str) -> bool:
        """Whether a signature that was delayed may still be submitted.

        While the machine slept or the platform was unreachable, a newer version may have been proposed. The
        whole list is read first. False where an entry of it cannot be read, or where the person is not in the
        workspace. The signature is withdrawn where there is a newer version. Raises UnknownProposal.
        """
        workspace_id = self.journal.record(psbt_id).snapshot.workspace_id
        reading = self._reading.setdefault(workspace_id, SingleFlight(partial(self._read_all, workspace_id)))
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                is_member = await reading.get()
        except (TimeoutError, SignedOut):
            return False
        except PlatformError as error:
            self._say_once(psbt_id, f"{WAITS} {said(error)}")
            return False
        step = self.journal.withdraw_replaced(psbt_id)
        if step is not None:
            self.sink.announce(step.news)
        elif is_member:
            self._held.pop(psbt_id, None)
        else:
            self._say_once(psbt_id, LEFT)
        return is_member

    def _say_once(self, psbt_id: str, sentence: str) -> None:
        """Why its signature is not sent yet."""
        if self._held.get(psbt_id) != sentence:
            self._held[psbt_id] = sentence
            self.sink.announce((Notify(psbt_id, Level.ATTENTION, sentence),))

    async def _read_all(self, workspace_id: int) -> bool:
        """Whether the person is a member, after reading the whole list. Raises PlatformError, SignedOut."""
        _user_id, seen = await self.platform.user()
        workspace = next((each for each in seen.items if each.id == workspace_id), None)
        if workspace is None and seen.unreadable:
            raise PlatformAnswersWrongly("the platform shows a workspace that cannot be read")
        goes_on = workspace is not None
        while workspace is not None and goes_on:
            heard = await self.others.read(workspace)
            if heard.left_out:
                # An entry that was left out may be a newer version.
                name = heard.left_out[0].name
                raise PlatformAnswersWrongly(f"its list has {name}, which cannot be read and may be newer")
            goes_on = heard.more
        return workspace is not None

    async def read_vaults(self, workspace: PlatformWorkspace) -> None:
        """Record what the platform says about the vaults; proposals are judged again where it changed."""
        listed = await self.platform.vaults(workspace)
        failed = await in_turn(
            lambda claim: self._taken(claim.vault_id, partial(self.journal.learn, claim)), listed.items
        )
        self._tell(VAULTS, workspace, (*listed.unreadable, *filter(None, failed)))

    async def _take(self, following: "_Following", listed: Listed[Snapshot]) -> set[str]:
        """Record every proposal of the list. Returns all ids that it named, also of entries that could not be
        read.
        """
        workspace = following.workspace
        known = {claim.vault_id for claim in self.journal.claims()}
        if any(snapshot.vault_id not in known for snapshot in listed.items):
            await self.read_vaults(workspace)
        unproven = await self.others.look_up_tokens(workspace, listed.items)
        self.troubles.report(f"{TOKENS} {workspace.id}", unproven)
        failed = await in_turn(self._poll, self._of_a_round(following, listed.items))
        left_out = (*listed.unreadable, *filter(None, failed))
        self._tell(LISTED, workspace, left_out)
        if left_out or unproven:
            following.again_at = self.outside.clock() + following.pause.next()
        else:
            following.again_at = None
            following.pause.reset()
        return {snapshot.psbt_id for snapshot in listed.items} | {entry.name for entry in listed.unreadable}

    def _of_a_round(self, following: "_Following", listed: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """Those of the list that are judged in this round; the list is asked for again for the rest (S34)."""
        begun, following.more_listed = self.journal.parts_judged, False
        for snapshot in listed:
            if self.journal.parts_judged - begun > MOST_PARTS_A_ROUND:
                following.more_listed = True
                return
            yield snapshot

    def _poll(self, snapshot: Snapshot) -> UnreadableEntry | None:
        return self._taken(snapshot.psbt_id, lambda: self.journal.poll(snapshot).news)

    def _taken(self, name: str, take: Callable[[], tuple[News, ...]]) -> UnreadableEntry | None:
        """Record and judge an entry. An unforeseen error fails that entry only; nothing is recorded."""
        try:
            self.sink.announce(take())
        except PlatformFloods as error:
            self._alarm(error)
            return UnreadableEntry(name, said(error))
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - an entry that breaks our code must not stop the others
            _log.exception("%s could not be taken", name)
            return UnreadableEntry(name, UNFORESEEN)
        return None

    def _alarm(self, error: PlatformFloods) -> None:
        """Notify once for each kind; the status reports what is left out for as long as it is."""
        sentence = f"ALARM: the platform floods this machine: {said(error)} {error.hint}"
        if sentence not in self._alarmed:
            self._alarmed.add(sentence)
            self.sink.announce((Notify(PLATFORM, Level.ALARM, sentence),))

    def _tell(self, group: str, workspace: PlatformWorkspace, left_out: Iterable[UnreadableEntry]) -> None:
        what = "vault" if group == VAULTS else "proposal"
        self.troubles.report(f"{group} {workspace.id}", _left_out(what, left_out))

    async def _read_others(self, following: "_Following", listed: Listed[Snapshot] | None) -> None:
        """Record what others signed without us (S27)."""
        heard = await self.others.read(following.workspace)
        following.others_have_more = heard.more
        # An unreadable proposal that awaits us is reported once, by the other list.
        reported = following.listed | {one.name for one in (() if listed is None else listed.unreadable)}
        self._tell(OTHERS, following.workspace, (one for one in heard.left_out if one.name not in reported))

    async def _follow_known(self, following: "_Following") -> bool:
        """Poll proposals that no longer await us, a few in each round, in turn. Returns whether there are
        any.
        """
        workspace, failed_ids = following.workspace, following.failed_ids
        open_ones = [each for each in self.journal.followed(workspace.id) if each not in following.listed]
        after = [psbt_id for psbt_id in open_ones if psbt_id > following.turn]
        before = [psbt_id for psbt_id in open_ones if psbt_id <= following.turn]
        for gone in failed_ids.keys() - set(open_ones):
            del failed_ids[gone]
        for psbt_id in islice((*sorted(after), *sorted(before)), FOLLOWED_A_ROUND):
            following.turn = psbt_id
            try:
                failed = self._poll(await self.platform.proposal(psbt_id, workspace))
            except PlatformRefused:
                failed = None  # The platform no longer has it or shows it: the record stays.
            except PlatformAnswersWrongly as error:
                failed = UnreadableEntry(psbt_id, said(error))
            if failed is None:
                failed_ids.pop(psbt_id, None)
            else:
                failed_ids[psbt_id] = failed
        self._tell(KNOWN, workspace, failed_ids.values())
        return bool(open_ones)


def _left_out(what: str, unreadable: Iterable[UnreadableEntry]) -> dict[str, str]:
    return {one.name: f"The platform's {what} {one.name} is left out: {one.why}" for one in unreadable}


@dataclass
class _Following:
    """The progress of following one workspace. ``listed``: the ids in the list of ``etag``. ``turn``: the
    last that was polled one by one. ``failed_ids``: those whose last answer could not be recorded.
    """

    workspace: PlatformWorkspace
    pause: Backoff
    etag: str | None = None
    listed: set[str] = field(default_factory=set)
    turn: str = ""
    failed_ids: dict[str, UnreadableEntry] = field(default_factory=dict)
    learnt: float | None = None
    one_by_one: bool = False
    others_have_more: bool = False
    more_listed: bool = False
    again_at: float | None = None

    def tag(self, now: float) -> str | None:
        """None where the whole list has to be read again, for entries that were left out before."""
        return None if self.again_at is not None and now >= self.again_at else self.etag
