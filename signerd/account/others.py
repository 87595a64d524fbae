"""What else is read from the platform: the tokens of proposals, and proposals that others signed.

A token is looked up before its proposal is judged, so that amounts are shown in its decimals; it is stored
only if its bytes prove it. Proposals that this machine never followed are stored for comparison, and the
person is not asked about them (S27). Where a look-up fails, proposals are judged all the same; a token's is
refused until it is proven.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from custody.common.text import said
from multisig.tokens import Payload
from signerd.account.platform import MOST_LISTED_BYTES, PlatformClient, Sink
from signerd.account.wire import MOST_LISTED, UNFORESEEN, PlatformWorkspace, UnreadableEntry
from signerd.core.events import Level, Notify
from signerd.core.following import may_yet_be_signed, unfollowed_of
from signerd.core.tokens import NotProven, payload_of_bytes, subject_of
from signerd.core.values import Snapshot, Unfollowed
from signerd.errors import PlatformError, PlatformFloods, PlatformRefused, SignerdError
from signerd.feed import in_turn
from signerd.journal import Journal

# The most look-ups in a round: a thousand unknown tokens must not delay the other proposals.
MOST_A_ROUND = 20
# For all look-ups together: a proposal must not wait for slow answers about tokens.
LONGEST_TOKENS_SECONDS = 20.0


_log = logging.getLogger(__name__)


def _unproven_text(snapshot: Snapshot, why: str) -> str:
    return f"The token of the platform's proposal {snapshot.psbt_id} is not proven: {why}"


# A proposal that awaits the person must not wait for slow answers about others.
LONGEST_LOOK_SECONDS = 20.0
# The most unreadable entries kept of one list: that there are any is what counts.
MOST_LEFT_OUT = 100
ALL = "list (what others signed)"
# The subject of what is told about it as a whole.
PLATFORM = "platform"
CAUGHT_UP = "The platform's whole list was read since the restore: you may approve again."


@dataclass(frozen=True)
class OthersRead:
    """``more``: the list goes on in the next round. ``left_out``: entries that cannot be compared, and
    why.
    """

    more: bool = False
    left_out: tuple[UnreadableEntry, ...] = ()


# What to store of a proposal of the list, with its vault's code; and whether it may yet be signed.
_Seen = tuple[tuple[str, Unfollowed] | None, bool]


@dataclass(frozen=True)
class _Place:
    """How far a list was read, for the vaults of these ``codes``. ``waits``: a proposal before ``after`` may
    yet be signed. ``left_out``: entries before it that could not be read.
    """

    codes: frozenset[str]
    after: str
    waits: bool
    left_out: tuple[UnreadableEntry, ...] = ()


@dataclass
class OthersProposals:
    """With the tokens of proposals. Used by one event loop."""

    journal: Journal
    platform: PlatformClient
    alarm: Callable[[PlatformFloods], None]
    sink: Sink
    # Where the last reading of a list stopped, by workspace.
    places: dict[int, _Place] = field(default_factory=dict)

    async def look_up_tokens(
        self, workspace: PlatformWorkspace, snapshots: Iterable[Snapshot]
    ) -> dict[str, str]:
        """Prove and store unknown tokens. Returns by proposal why its token is not proven. Raises
        SignedOut.
        """
        payloads = ((payload_of_bytes(s.psbt), s) for s in snapshots if s.is_of_token)
        wanted = [
            (payload, snapshot)
            for payload, snapshot in payloads
            if payload is not None and self.journal.bytecode(payload) is None
        ]
        unproven = {
            snapshot.psbt_id: _unproven_text(snapshot, "it waits for a later round.")
            for _p, snapshot in wanted
        }
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_TOKENS_SECONDS):
                for payload, snapshot in wanted[:MOST_A_ROUND]:
                    why = await self._look_up_token(workspace, payload, snapshot)
                    if why is None:
                        del unproven[snapshot.psbt_id]
                    else:
                        unproven[snapshot.psbt_id] = _unproven_text(snapshot, why)
        return unproven

    async def _look_up_token(
        self, workspace: PlatformWorkspace, payload: Payload, snapshot: Snapshot
    ) -> str | None:
        if self.journal.bytecode(payload) is not None:
            return None  # Looked up for another proposal of this round.
        if snapshot.contract_uid is None:
            return "the platform does not name the token."
        try:
            published = await self.platform.published(workspace, snapshot.contract_uid)
            self.sink.announce(self.journal.learn_token(payload, published))
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

    async def read(self, workspace: PlatformWorkspace) -> OthersRead:
        """Read the list of a workspace from where the last reading ended, up to a bound.

        Raises SignedOut; leaves of JournalError.
        """
        codes = frozenset(
            pin.vault.verification_code for pin in self.journal.pins() if pin.workspace_id == workspace.id
        )
        try:
            async with asyncio.timeout(LONGEST_LOOK_SECONDS):
                return await self._read_on(workspace, codes) if codes else OthersRead()
        except TimeoutError:
            return OthersRead(more=True)
        except PlatformError as error:
            if isinstance(error, PlatformFloods):
                self.alarm(error)
            if isinstance(error, PlatformRefused):
                # The platform may no longer have the proposal after which the list was to continue.
                self.journal.hear_anew(workspace.id)
            return OthersRead(left_out=(UnreadableEntry(ALL, said(error)),))
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - what breaks our code here must not stop this signer's proposals
            _log.exception("the whole list of workspace %s could not be read", workspace.id)
            return OthersRead(left_out=(UnreadableEntry(ALL, UNFORESEEN),))

    async def _read_on(self, workspace: PlatformWorkspace, codes: frozenset[str]) -> OthersRead:
        after, waits = self.journal.heard_until(workspace.id, codes), False
        left_out: tuple[UnreadableEntry, ...] = ()
        place = self.places.pop(workspace.id, None)
        if place is not None and codes <= place.codes:
            after, waits, left_out = place.after, place.waits, place.left_out
        count, size = 0, 0
        while count < MOST_LISTED and size < MOST_LISTED_BYTES:
            page = await self.platform.everyones(workspace, after)
            left_out = (*left_out, *page.listed.unreadable)[:MOST_LEFT_OUT]
            # After a restore, an unreadable entry may carry our signature: the next reading begins before it.
            waits = waits or (bool(left_out) and workspace.id in self.journal.behind())
            waits = await self._take(workspace, codes, page.listed.items, waits=waits)
            if page.last is None or page.last == after:
                # The end: the next reading begins at the first proposal that may still change.
                self.places.pop(workspace.id, None)
                if not left_out and self.journal.caught_up(workspace.id, codes):
                    self.sink.announce((Notify(PLATFORM, Level.INFO, CAUGHT_UP),))
                return OthersRead(left_out=left_out)
            count, size, after = count + page.count, size + page.size, page.last
            self.places[workspace.id] = _Place(codes, after, waits, left_out)
        return OthersRead(more=True, left_out=left_out)

    async def _take(
        self, workspace: PlatformWorkspace, codes: frozenset[str], page: Sequence[Snapshot], *, waits: bool
    ) -> bool:
        """Store what others signed. Returns whether a proposal so far may yet be signed: the next reading
        then begins there.
        """
        proposals, until = [], None
        look = partial(self._look_at, behind=workspace.id in self.journal.behind())
        for snapshot, (signed, may_yet_be) in zip(page, await in_turn(look, page), strict=True):
            waits = waits or may_yet_be
            until = until if waits else snapshot.psbt_id
            if signed is not None:
                proposals.append(signed)
        if proposals or until is not None:
            self.journal.hear(workspace.id, codes, proposals, until)
        return waits

    def _look_at(self, snapshot: Snapshot, *, behind: bool) -> _Seen:
        """``behind``: after a restore what carries our signature is recorded, even where this journal does
        not have it.
        """
        for take in (self.journal.recall, self.journal.replaced) if behind else (self.journal.replaced,):
            step = take(snapshot)
            if step is not None:
                self.sink.announce(step.news)
        pin = self.journal.pin_of(snapshot)
        if pin is None or self.journal.is_followed(snapshot.psbt_id):
            return None, False
        one = unfollowed_of(snapshot)
        signed = None if one is None else (pin.vault.verification_code, one)
        return signed, may_yet_be_signed(snapshot)
