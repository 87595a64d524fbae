"""What the daemon reads from the platform beside this signer's own proposals: their tokens, and proposals of
others.

A token is looked up before its proposal is judged, so that the person is first shown it in the token's own
decimals; it is kept only where bytes prove it. Proposals that this machine never followed are kept for
comparing, and the person is not asked about them (S27). When a look-up fails, this signer's proposals are
judged all the same; a token's is refused until it is proven.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from multisig.tokens import Payload
from signerd.account.platform import MOST_LISTED_BYTES, Platform, Sink
from signerd.account.wire import MOST_LISTED, UNFORESEEN, Unreadable, Workspace
from signerd.core.following import may_yet_be_signed, unfollowed_of
from signerd.core.text import said
from signerd.core.tokens import NotProven, payload_of_bytes, subject_of
from signerd.core.values import Snapshot, Unfollowed
from signerd.errors import (
    PlatformAnswersWrongly,
    PlatformError,
    PlatformFloods,
    PlatformRefused,
    PlatformUnreachable,
    SignerdError,
)
from signerd.journal import Journal

# A round learns so many; a platform that shows a thousand unknown tokens does not keep the other proposals
# waiting.
MOST_A_ROUND = 20
# All of them together: a proposal that waits for the person must not wait for a slow answer about a token.
LONGEST_TOKENS_SECONDS = 20.0


_log = logging.getLogger(__name__)


@dataclass
class TokensLearnt:
    journal: Journal
    platform: Platform
    sink: Sink
    alarm: Callable[[PlatformFloods], None]

    async def learn(self, workspace: Workspace, snapshots: Iterable[Snapshot]) -> dict[str, str]:
        """Prove and keep the tokens that are not known yet; by proposal, why one could not be. Raises
        SignedOut.
        """
        wanted = self._unknown(snapshots)
        unproven = {
            snapshot.psbt_id: _told(snapshot, "it is asked for in its turn.") for _p, snapshot in wanted
        }
        try:
            async with asyncio.timeout(LONGEST_TOKENS_SECONDS):
                for payload, snapshot in wanted[:MOST_A_ROUND]:
                    why = await self._learn(workspace, payload, snapshot)
                    if why is None:
                        del unproven[snapshot.psbt_id]
                    else:
                        unproven[snapshot.psbt_id] = _told(snapshot, why)
        except TimeoutError:
            pass
        return unproven

    def _unknown(self, snapshots: Iterable[Snapshot]) -> list[tuple[Payload, Snapshot]]:
        found = ((payload_of_bytes(s.psbt), s) for s in snapshots if s.is_of_token)
        return [
            (payload, snapshot)
            for payload, snapshot in found
            if payload is not None and self.journal.tokens.bytecode(payload) is None
        ]

    async def _learn(self, workspace: Workspace, payload: Payload, snapshot: Snapshot) -> str | None:
        if self.journal.tokens.bytecode(payload) is not None:
            return None  # Another proposal of this round is about it, too.
        if snapshot.contract_uid is None:
            return "the platform does not say which token of its own it means."
        try:
            published = await self.platform.published(workspace, snapshot.contract_uid)
            self.sink.perform(self.journal.learn_token(payload, published))
        except (PlatformError, NotProven) as error:
            if isinstance(error, PlatformFloods):
                self.alarm(error)
            return f"token {subject_of(payload)}: {said(error)}"
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - a token that breaks our code must not stop the proposals
            _log.exception("the token %s could not be read", subject_of(payload))
            return f"token {subject_of(payload)}: {UNFORESEEN}"
        return None


def _told(snapshot: Snapshot, why: str) -> str:
    return f"The token of the platform's proposal {snapshot.psbt_id} is not proven: {why}"


# A proposal that waits for the person must not wait for slow answers about others.
LONGEST_LOOK_SECONDS = 20.0
# Named of one list, over all rounds that it takes; that there are any is what counts.
MOST_LEFT_OUT = 100
ALL = "list (what others signed)"


@dataclass(frozen=True)
class Heard:
    """``more``: the list goes on, and is read on at the next round. ``left_out``: what cannot be compared,
    and why.
    """

    more: bool = False
    left_out: tuple[Unreadable, ...] = ()


@dataclass(frozen=True)
class _Seen:
    """A proposal of the list. ``signed``: with its quorum, where it is to be kept. ``waits``: it may yet be
    signed.
    """

    psbt_id: str
    signed: tuple[str, Unfollowed] | None = None
    waits: bool = False


@dataclass(frozen=True)
class _Place:
    """A list was read to ``after`` for the vaults of these ``codes``. ``waits``: one before it may yet be
    signed. ``left_out``: what before it could not be read.
    """

    codes: frozenset[str]
    after: str
    waits: bool
    left_out: tuple[Unreadable, ...] = ()


@dataclass
class OthersHeard:
    """``in_turn`` looks at each of many, and lets others be served meanwhile."""

    journal: Journal
    platform: Platform
    alarm: Callable[[PlatformFloods], None]
    in_turn: Callable[[Callable[[Snapshot], _Seen], Iterable[Snapshot]], Awaitable[list[_Seen]]]
    sink: Sink
    # Where the last look at a list was broken off, by workspace.
    places: dict[int, _Place] = field(default_factory=dict)

    async def hear(self, workspace: Workspace) -> Heard:
        """Read the whole list of a workspace on from where the last look ended, up to a bound.

        Raises SignedOut; leaves of JournalError.
        """
        codes = frozenset(
            pin.vault.verification_code for pin in self.journal.pins() if pin.workspace_id == workspace.id
        )
        try:
            async with asyncio.timeout(LONGEST_LOOK_SECONDS):
                return await self._read_on(workspace, codes) if codes else Heard()
        except TimeoutError:
            return Heard(more=True)
        except (PlatformUnreachable, PlatformRefused, PlatformAnswersWrongly, PlatformFloods) as error:
            if isinstance(error, PlatformFloods):
                self.alarm(error)
            if isinstance(error, PlatformRefused):
                # The proposal that the list was to go on from may be gone there.
                self.journal.hear_anew(workspace.id)
            return Heard(left_out=(Unreadable(ALL, said(error)),))
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - what breaks our code here must not stop this signer's proposals
            _log.exception("the whole list of workspace %s could not be read", workspace.id)
            return Heard(left_out=(Unreadable(ALL, UNFORESEEN),))

    async def _read_on(self, workspace: Workspace, codes: frozenset[str]) -> Heard:
        after, waits = self.journal.unfollowed.heard_until(workspace.id, codes), False
        left_out: tuple[Unreadable, ...] = ()
        place = self.places.pop(workspace.id, None)
        if place is not None and codes <= place.codes:
            after, waits, left_out = place.after, place.waits, place.left_out
        count, size = 0, 0
        while count < MOST_LISTED and size < MOST_LISTED_BYTES:
            page = await self.platform.everyones(workspace, after)
            left_out = (*left_out, *page.listed.unreadable)[:MOST_LEFT_OUT]
            # After a restore, what cannot be read may carry our signature: the next look begins before it.
            waits = waits or (bool(left_out) and workspace.id in self.journal.behind())
            waits = await self._take(workspace, codes, page.listed.items, waits=waits)
            if page.last is None or page.last == after:
                # To the end: the next look begins again where nothing need be looked at twice.
                self.places.pop(workspace.id, None)
                if not left_out:
                    self.journal.caught_up(workspace.id, codes)
                return Heard(left_out=left_out)
            count, size, after = count + page.count, size + page.size, page.last
            self.places[workspace.id] = _Place(codes, after, waits, left_out)
        return Heard(more=True, left_out=left_out)

    async def _take(
        self, workspace: Workspace, codes: frozenset[str], page: Sequence[Snapshot], *, waits: bool
    ) -> bool:
        """Keep what others signed. Whether any so far may yet be signed: then it is looked at again, with all
        behind it.
        """
        found, until = [], None
        look = self._recall if workspace.id in self.journal.behind() else self._look_at
        for seen in await self.in_turn(look, page):
            waits = waits or seen.waits
            until = until if waits else seen.psbt_id
            if seen.signed is not None:
                found.append(seen.signed)
        if found or until is not None:
            self.journal.hear(workspace.id, codes, found, until)
        return waits

    def _recall(self, snapshot: Snapshot) -> _Seen:
        """After a restore: what carries our signature is ours, whatever this journal remembers of it."""
        step = self.journal.recall(snapshot)
        if step is not None:
            self.sink.perform(step.effects)
        return self._look_at(snapshot)

    def _look_at(self, snapshot: Snapshot) -> _Seen:
        step = self.journal.replaced(snapshot)
        if step is not None:
            self.sink.perform(step.effects)
        pin = self.journal.pin_of(snapshot)
        if pin is None or self.journal.is_followed(snapshot.psbt_id):
            return _Seen(snapshot.psbt_id)
        one = unfollowed_of(snapshot)
        signed = None if one is None else (pin.vault.verification_code, one)
        return _Seen(snapshot.psbt_id, signed, may_yet_be_signed(snapshot))
